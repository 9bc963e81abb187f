#include "cli/demo/timeline_json.h"

#include "base/checked.h"

static json_int_t since_start_ms(const struct demo_act *act, int64_t at_ns)
{
    return (at_ns - act->start_ns) / ASTER_NS_PER_MS;
}

static json_t *events_json(const struct demo_act *act)
{
    json_t *array = json_array();
    for (size_t i = 0; i < act->event_count; i++) {
        const struct demo_event *event = &act->events[i];
        json_array_append_new(array, json_pack("{s:I, s:s, s:s, s:I, s:s}", "at_ms", since_start_ms(act, event->at_ns),
                                               "actor", aster_demo_lane_name(act, event->lane), "kind",
                                               aster_demo_mark_name(event->mark), "epoch", (json_int_t)event->epoch,
                                               "text", event->text));
    }
    return array;
}

static json_t *spans_json(const struct demo_act *act)
{
    json_t *array = json_array();
    for (size_t i = 0; i < act->span_count; i++) {
        const struct demo_span *span = &act->spans[i];
        json_t *end = span->to_ns != 0 ? json_integer(since_start_ms(act, span->to_ns)) : json_null();
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:I, s:I, s:o}", "actor", aster_demo_lane_name(act, span->lane),
                                        "kind", aster_demo_span_name(span->kind), "epoch", (json_int_t)span->epoch,
                                        "from_ms", since_start_ms(act, span->from_ns), "to_ms", end));
    }
    return array;
}

json_t *aster_demo_json(const struct demo_act *acts, size_t act_count, const struct demo_expectations *expectations)
{
    json_t *act_array = json_array();
    for (size_t i = 0; i < act_count; i++) {
        json_array_append_new(act_array, json_pack("{s:s, s:o, s:o}", "title", acts[i].title, "events",
                                                   events_json(&acts[i]), "spans", spans_json(&acts[i])));
    }
    json_t *expectation_array = json_array();
    for (size_t i = 0; i < expectations->count; i++) {
        const struct demo_expectation *item = &expectations->items[i];
        json_array_append_new(expectation_array, json_pack("{s:s, s:s, s:b, s:s}", "name", item->name, "text",
                                                           item->text, "met", item->met, "observed", item->observed));
    }
    return json_pack("{s:o, s:o, s:b}", "acts", act_array, "expectations", expectation_array, "met",
                     aster_demo_expectations_failed(expectations) == 0);
}
