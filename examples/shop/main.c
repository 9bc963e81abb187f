/* shop MODULE --db URL [--order ID] [--worker NAME] [--ttl MS] [--page MS] [--no-fence] */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shop.h"

static const struct {
    const char *name;
    int (*run)(const struct shop *shop, struct db *db);
} modules[] = {
    {"catalog", catalog_run},           {"cart", cart_run},       {"order", order_run},
    {"payment", payment_run},           {"invoice", invoice_run}, {"shipping", shipping_run},
    {"notification", notification_run}, {"report", report_run},
};

static int usage(void)
{
    fprintf(stderr, "usage: shop MODULE --db URL [--order ID] [--worker NAME] [--ttl MS] [--page MS] [--no-fence]\n"
                    "modules:");
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        fprintf(stderr, " %s", modules[i].name);
    }
    fprintf(stderr, "\n");
    return 64;
}

static bool parse(int argc, char **argv, struct shop *shop)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"order", required_argument, NULL, 'o'},
        {"worker", required_argument, NULL, 'w'},
        {"ttl", required_argument, NULL, 't'},
        {"page", required_argument, NULL, 'p'},
        {"no-fence", no_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'd':
            shop->url = optarg;
            break;
        case 'o':
            shop->order = optarg;
            break;
        case 'w':
            shop->worker = optarg;
            break;
        case 't':
            shop->ttl_ms = strtoll(optarg, NULL, 10);
            break;
        case 'p':
            shop->page_ms = strtoll(optarg, NULL, 10);
            break;
        case 'n':
            shop->without_fence = true;
            break;
        default:
            return false;
        }
    }
    return shop->url != NULL && optind == argc - 1;
}

int main(int argc, char **argv)
{
    struct shop shop = {NULL, "B-1042", "worker", 30000, 500, false};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv, &shop)) {
        return usage();
    }
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        if (strcmp(argv[optind], modules[i].name) == 0) {
            struct db *db = db_open(shop.url);
            int code = db != NULL ? modules[i].run(&shop, db) : SHOP_FAILED;
            db_close(db);
            return code;
        }
    }
    return usage();
}
