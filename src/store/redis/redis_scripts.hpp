// What the server does in one go. Each script makes all its checks before its first write, so none ends half done: what
// could be refused for want of memory or of a disk, the server refuses before the script begins. Those that take little
// memory are allowed without.
#pragma once

namespace argiope::redis_scripts {

// KEYS: meta, touched. ARGV: the holder's name (empty: no owner), its lease in ms, the client, whose id is the epoch of
// an owner, and the end of a lease that does not count. Gives how it went, then, where it did, the owner's last batch;
// else what stands against it.
inline constexpr const char* kOpen = R"lua(#!lua flags=allow-oom
local kept = redis.call('HMGET', KEYS[1], 'format', 'owner', 'until', 'batch')
if kept[1] and kept[1] ~= '1' then return {'format', kept[1]} end
if not kept[1] and redis.call('EXISTS', KEYS[1]) == 1 then return {'format', '?'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] ~= '' and kept[3] and kept[3] ~= ARGV[4] and tonumber(kept[3]) > now then
  return {'held', kept[2], kept[3]}
end
if not kept[1] then
  redis.call('HSET', KEYS[1], 'format', '1', 'version', '0', 'batch', '0')
end
if ARGV[1] ~= '' then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[3], 'owner', ARGV[1], 'until', string.format('%.0f', now + ARGV[2]))
  redis.call('DEL', KEYS[2])
end
return {'open', kept[4] or '0'}
)lua";

// KEYS: meta. ARGV: epoch, the lease in ms; 0: it is given back.
inline constexpr const char* kRenew = R"lua(#!lua flags=allow-oom
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return 'gone' end
if epoch ~= ARGV[1] then return 'lost' end
if ARGV[2] == '0' then
  redis.call('HSET', KEYS[1], 'until', '0', 'owner', '')
else
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]))
end
return 'done'
)lua";

// KEYS: meta. ARGV: epoch, then fields and the numbers that these are to have at least. Those who know the version of
// before read them anew.
inline constexpr const char* kRaise = R"lua(#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 'lost' end
for at = 2, #ARGV, 2 do
  local kept = tonumber(redis.call('HGET', KEYS[1], ARGV[at]) or '0')
  if kept and kept < tonumber(ARGV[at + 1]) then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
end
redis.call('HSET', KEYS[1], 'version', ARGV[1] .. '.raised')
return 'done'
)lua";

// KEYS: the lock, meta. ARGV: client, for how many ms. Gives whether it has the lock now, and the version.
inline constexpr const char* kLock = R"lua(#!lua flags=allow-oom
if not redis.acl_check_cmd('SET', KEYS[1]) then return redis.error_reply('NOPERM this user may not SET ' .. KEYS[1]) end
local version = redis.call('HGET', KEYS[2], 'version')
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {'held', version} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'locked', version}
)lua";

// KEYS: the lock. ARGV: client.
inline constexpr const char* kUnlock = R"lua(#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 'done'
)lua";

// KEYS: meta, the lock, the client's last batch, then hashes and sorted sets that are written. ARGV: client; epoch
// (empty: no owner); the owner's batch before; this batch; the version it was made from; the lease in ms; how many of
// the keys are hashes; for how many seconds the client's batch is noted; then for each command its name, the number of
// its key, how many arguments, and these. Behind one of two beginnings.
inline constexpr const char* kNeedsMemory = "#!lua\n";
inline constexpr const char* kNeedsNoMemory = "#!lua flags=allow-oom\n";
inline constexpr const char* kCommit = R"lua(
local client, epoch, last, batch, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local meta, lock, record = KEYS[1], KEYS[2], KEYS[3]
local kept = redis.call('HMGET', meta, 'version', 'epoch', 'batch', 'owner')
if not kept[1] then return 'gone' end
local owns = epoch ~= ''
local done = kept[3]
if not owns then done = redis.call('GET', record) end
if done == batch or kept[1] == batch then return 'done' end
if owns and kept[2] ~= epoch then return 'lost' end
if owns and kept[3] ~= last then return 'back' end
local holder = redis.call('GET', lock)
if holder and holder ~= client then return 'locked' end
if kept[1] ~= version then return 'changed' end
local hashes = 3 + ARGV[7]
for i = 4, #KEYS do
  local kind = redis.call('TYPE', KEYS[i])['ok']
  if kind ~= 'none' and kind ~= (i <= hashes and 'hash' or 'zset') then return 'kind ' .. KEYS[i] end
end
for _, command in ipairs({{'HSET', meta}, {'DEL', lock}, {'SET', record}}) do
  if not redis.acl_check_cmd(command[1], command[2]) then
    return redis.error_reply('NOPERM this user may not ' .. command[1] .. ' ' .. command[2])
  end
end
local at = 9
while at <= #ARGV do
  local name, key = ARGV[at], KEYS[tonumber(ARGV[at + 1])]
  if not redis.acl_check_cmd(name, key) then
    return redis.error_reply('NOPERM this user may not ' .. name .. ' ' .. key)
  end
  if name == 'HINCRBY' then
    local number = redis.call('HGET', key, ARGV[at + 3]) or '0'
    if #number > 16 or not string.find(number, '^%-?%d+$') then return 'number ' .. key .. ' ' .. ARGV[at + 3] end
  end
  at = at + 3 + ARGV[at + 2]
end
-- Without an owner nobody is told: the next one reads all.
local touched = (kept[4] or '') == '' and string.sub(meta, 1, -5) .. 'touched'
at = 9
while at <= #ARGV do
  local last_argument = at + 2 + ARGV[at + 2]
  local key = KEYS[tonumber(ARGV[at + 1])]
  if owns or key ~= touched then redis.call(ARGV[at], key, unpack(ARGV, at + 3, last_argument)) end
  at = last_argument + 1
end
if owns then
  local time = redis.call('TIME')
  redis.call('HSET', meta, 'version', batch, 'batch', batch, 'until',
             string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[6]))
else
  redis.call('HSET', meta, 'version', batch)
  redis.call('SET', record, batch, 'EX', ARGV[8])
end
if holder then redis.call('DEL', lock) end
return 'done'
)lua";

}  // namespace argiope::redis_scripts
