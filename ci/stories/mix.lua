-- For wrk: of N requests, all but one go to the path WAITS, which waits; one to the next of PAGES.
--
--     wrk -s mix.lua URL -- N WAITS PAGES...
--
-- It prints `requests per second, p50 and p99 in ms, requests, errors`.

local every, waits, pages = nil, nil, {}

function init(arguments)
    every, waits = tonumber(arguments[1]), arguments[2]
    for i = 3, #arguments do pages[i - 2] = arguments[i] end
    -- Not all connections start with the same.
    math.randomseed(os.time())
end

function request()
    if math.random(every) > 1 then return wrk.format("GET", waits) end
    return wrk.format("GET", pages[math.random(#pages)])
end

function done(summary, latency)
    local e = summary.errors
    io.write(string.format("result %.0f %.0f %.0f %d %d\n", summary.requests / summary.duration * 1e6,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, summary.requests,
        e.connect + e.read + e.write + e.status + e.timeout))
end
