#!lua name=aster
--[[ Fenced writes in Redis 7 and newer. Load with `aster schema apply redis --to redis://HOST:PORT`, or
     `redis-cli -x FUNCTION LOAD REPLACE < lua/aster.lua`.

Redis keeps a high-water mark for each resource, the *fence row*: the greatest epoch that was pushed, and its holder
("" = nobody holds it). aster_push moves it, only ever forward. Every fenced write compares what it carries with the
fence row and runs its command in the same atomic step, in the order of Aster's fence rule:

    WRONG_RESOURCE  the fence row is another resource's
    STALE_EPOCH     an older epoch: this writer was replaced
    FUTURE_EPOCH    a newer epoch than any that was pushed: push the grant first
    NOT_HELD        the lease was given back
    NOT_HOLDER      the current epoch is another's

A refusal is an error reply whose first word is the reason with ASTER_ in front; nothing was written then.

What it does not do: Redis hears of a release or a takeover only by a push, so until then an old epoch is still let in;
and Redis does not tell a function who calls it, so the writer's name is what the caller says. See docs/redis.md.

Keys: the first is the fence row, by convention aster:fence:{RESOURCE}; in a cluster, keys with the same {RESOURCE} in
their names are in its slot. Arguments: RESOURCE EPOCH WRITER, then those of the write.

    FCALL aster_push  1 FENCE            RESOURCE EPOCH HOLDER        ("" as holder: free) -> {advanced, epoch, holder}
    FCALL aster_fence 1 FENCE            RESOURCE                     -> {epoch, holder}; never pushed: {"0", ""}
    FCALL aster_set   2 FENCE KEY        RESOURCE EPOCH WRITER VALUE [option of SET ...]
    FCALL aster_del   N FENCE KEY ...    RESOURCE EPOCH WRITER
    FCALL aster_hset  2 FENCE KEY        RESOURCE EPOCH WRITER FIELD VALUE [FIELD VALUE ...]
    FCALL aster_hdel  2 FENCE KEY        RESOURCE EPOCH WRITER FIELD [FIELD ...]
    FCALL aster_call  N FENCE KEY ...    RESOURCE EPOCH WRITER COMMAND [argument ...]   (its keys are repeated as KEY ...) ]]

local NAME_MAX = 512 -- bytes of a resource
local HOLDER_MAX = 256
local EPOCH_MAX = '9223372036854775807' -- signed 64-bit

local function refuse(reason, text)
    return redis.error_reply('ASTER_' .. reason .. ' ' .. text)
end

-- Epochs stay decimal texts: a Lua number is exact only to 2^53. Texts without leading zeros compare by length first.
local function precedes(a, b)
    if #a ~= #b then
        return #a < #b
    end
    return a < b
end

local function is_epoch(text)
    if text == nil or not (text == '0' or string.match(text, '^[1-9]%d*$')) then
        return false
    end
    return not precedes(EPOCH_MAX, text)
end

local function is_name(text, max)
    return text ~= nil and #text >= 1 and #text <= max and not string.find(text, '[%z\1-\31\127]')
end

-- nil, or what is wrong with the fence row's key and the three leading arguments.
local function check_carried(keys, args)
    if #keys < 1 then
        return refuse('INVALID', 'the first key is missing: the fence row, by convention aster:fence:{RESOURCE}')
    end
    if not is_name(args[1], NAME_MAX) then
        return refuse('INVALID', 'the resource is ' .. #(args[1] or '') .. ' bytes or has control characters: 1 to '
            .. NAME_MAX .. ' bytes without them are allowed')
    end
    if not is_epoch(args[2]) then
        return refuse('INVALID', 'the epoch is no decimal number from 0 to ' .. EPOCH_MAX)
    end
    return nil
end

-- The fence row is one text of three lines, so that a good fence is found good by one comparison: names have no line ends.
local function row_of(epoch, holder, resource)
    return epoch .. '\n' .. holder .. '\n' .. resource
end

-- The fence row: epoch, holder, and the error when it is another resource's.
local function load_row(key, resource)
    local row = redis.call('GET', key)
    if not row then
        return '0', '', nil
    end
    local epoch, holder, owner = string.match(row, '^(%d+)\n([^\n]*)\n([^\n]*)$')
    if owner ~= resource then
        return nil, nil, refuse('WRONG_RESOURCE', 'the fence row belongs to another resource: use its own key')
    end
    return epoch, holder, nil
end

local function carried_and_current(carried, current)
    return 'carried ' .. carried .. ', current ' .. current
end

-- Is the fence exactly the row? Then all three parts are as valid as the row is. '' as writer is nobody.
local function is_current(keys, args, keys_min, args_min)
    if #keys < keys_min or #args < args_min or keys_min < 1 or args[3] == '' then
        return false
    end
    for i = 2, #keys do
        if keys[i] == keys[1] then
            return false
        end
    end
    return redis.call('GET', keys[1]) == row_of(args[2], args[3], args[1])
end

-- Run write(keys, args) if the fence is current; otherwise say what is wrong with it.
local function fenced(keys, args, keys_min, args_min, write)
    if is_current(keys, args, keys_min, args_min) then
        return write(keys, args)
    end
    local wrong = check_carried(keys, args)
    if wrong then
        return wrong
    end
    if not is_name(args[3], HOLDER_MAX) then
        return refuse('INVALID', 'the writer is ' .. #(args[3] or '') .. ' bytes or has control characters: 1 to '
            .. HOLDER_MAX .. ' bytes without them are allowed')
    end
    for i = 2, #keys do
        if keys[i] == keys[1] then
            return refuse('INVALID', 'the fence row is no data: only aster_push changes it')
        end
    end
    if #keys < keys_min or #args < args_min then
        return refuse('INVALID', 'it needs ' .. keys_min .. ' keys and ' .. args_min .. ' arguments at least, and got '
            .. #keys .. ' and ' .. #args)
    end
    local epoch, holder, other = load_row(keys[1], args[1])
    if other then
        return other
    end
    if precedes(args[2], epoch) then
        return refuse('STALE_EPOCH', carried_and_current(args[2], epoch) .. ': this writer was replaced; stop writing')
    end
    if precedes(epoch, args[2]) then
        return refuse('FUTURE_EPOCH', carried_and_current(args[2], epoch) .. ': push the grant first (aster fence push)')
    end
    if holder == '' then
        return refuse('NOT_HELD', carried_and_current(args[2], epoch) .. ': the lease was given back; acquire again')
    end
    if holder ~= args[3] then
        return refuse('NOT_HOLDER', carried_and_current(args[2], epoch) .. ': the epoch is another holder\'s')
    end
    return write(keys, args)
end

-- In pieces, because unpack() has a limit of about 8000 values; only for commands that may be repeated so.
local PIECE = 4000
local function in_pieces(command, head, list, first)
    local count = 0
    for i = first, #list, PIECE do
        local piece = {}
        for j = i, math.min(i + PIECE - 1, #list) do
            piece[#piece + 1] = list[j]
        end
        if head then
            table.insert(piece, 1, head)
        end
        count = count + redis.call(command, unpack(piece))
    end
    return count
end

-- Forward only. The same epoch again must say the same; it is how a lost reply is repeated.
local function push(keys, args)
    local wrong = check_carried(keys, args)
    if wrong then
        return wrong
    end
    local holder = args[3] or ''
    if holder ~= '' and not is_name(holder, HOLDER_MAX) then
        return refuse('INVALID', 'the holder is ' .. #holder .. ' bytes or has control characters: at most '
            .. HOLDER_MAX .. ' bytes without them are allowed')
    end
    local epoch, current, other = load_row(keys[1], args[1])
    if other then
        return other
    end
    if precedes(epoch, args[2]) then
        redis.call('SET', keys[1], row_of(args[2], holder, args[1]))
        return {1, args[2], holder}
    end
    if precedes(args[2], epoch) then
        return {0, epoch, current}
    end
    if current ~= holder then
        return refuse('CONFLICT', 'epoch ' .. epoch
            .. ' was pushed before with another holder: two serializers own this resource, or one was restored')
    end
    return {0, epoch, current}
end

local function set(keys, args)
    return redis.call('SET', keys[2], unpack(args, 4))
end

local function del(keys)
    return in_pieces('DEL', nil, keys, 2)
end

local function hset(keys, args)
    if #args % 2 == 0 then
        return refuse('INVALID', 'a field has no value')
    end
    return in_pieces('HSET', keys[2], args, 4)
end

local function hdel(keys, args)
    return in_pieces('HDEL', keys[2], args, 4)
end

local function call(keys, args)
    for i = 5, #args do
        if args[i] == keys[1] then
            return refuse('INVALID', 'the fence row is no data: only aster_push changes it')
        end
    end
    return redis.call(args[4], unpack(args, 5))
end

local function register(name, keys_min, args_min, write)
    redis.register_function(name, function(keys, args)
        return fenced(keys, args, keys_min, args_min, write)
    end)
end

redis.register_function('aster_push', push)
redis.register_function {
    function_name = 'aster_fence',
    flags = {'no-writes'},
    callback = function(keys, args)
        local wrong = check_carried(keys, {args[1], '0'})
        if wrong then
            return wrong
        end
        local epoch, holder, other = load_row(keys[1], args[1])
        return other or {epoch, holder}
    end
}
register('aster_set', 2, 4, set)
register('aster_del', 2, 3, del)
register('aster_hset', 2, 5, hset)
register('aster_hdel', 2, 4, hdel)
register('aster_call', 1, 4, call)
