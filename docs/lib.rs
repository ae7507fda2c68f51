//! Compiles and runs the Rust code of the pages that belong to no single crate.
//!
//! `pirn-http`, `pirn-actor` and `pirn-flow` test their own guides.

#[cfg(doctest)]
mod cookbook {
    #[doc = include_str!("cookbook/async.md")]
    pub struct Async;
    #[doc = include_str!("cookbook/background-job.md")]
    pub struct BackgroundJob;
    #[doc = include_str!("cookbook/batch-writes.md")]
    pub struct BatchWrites;
    #[doc = include_str!("cookbook/chat.md")]
    pub struct Chat;
    #[doc = include_str!("cookbook/child-process.md")]
    pub struct ChildProcess;
    #[doc = include_str!("cookbook/circuit-breaker.md")]
    pub struct CircuitBreaker;
    #[doc = include_str!("cookbook/connection-pool.md")]
    pub struct ConnectionPool;
    #[doc = include_str!("cookbook/cpu-bound.md")]
    pub struct CpuBound;
    #[doc = include_str!("cookbook/crawler.md")]
    pub struct Crawler;
    #[doc = include_str!("cookbook/deadlines.md")]
    pub struct Deadlines;
    #[doc = include_str!("cookbook/first-answer.md")]
    pub struct FirstAnswer;
    #[doc = include_str!("cookbook/hanging.md")]
    pub struct Hanging;
    #[doc = include_str!("cookbook/line-protocol.md")]
    pub struct LineProtocol;
    #[doc = include_str!("cookbook/parallel-map.md")]
    pub struct ParallelMap;
    #[doc = include_str!("cookbook/partial-results.md")]
    pub struct PartialResults;
    #[doc = include_str!("cookbook/pipeline.md")]
    pub struct Pipeline;
    #[doc = include_str!("cookbook/rate-limit.md")]
    pub struct RateLimit;
    #[doc = include_str!("cookbook/request-context.md")]
    pub struct RequestContext;
    #[doc = include_str!("cookbook/restart.md")]
    pub struct Restart;
    #[doc = include_str!("cookbook/retry.md")]
    pub struct Retry;
    #[doc = include_str!("cookbook/sigterm.md")]
    pub struct Sigterm;
    #[doc = include_str!("cookbook/single-flight.md")]
    pub struct SingleFlight;
    #[doc = include_str!("cookbook/tcp-proxy.md")]
    pub struct TcpProxy;
    #[doc = include_str!("cookbook/testing.md")]
    pub struct Testing;
    #[doc = include_str!("cookbook/time-limit.md")]
    pub struct TimeLimit;
}

#[cfg(doctest)]
mod coming_from {
    #[doc = include_str!("coming-from/cpp.md")]
    pub struct Cpp;
    #[doc = include_str!("coming-from/erlang.md")]
    pub struct Erlang;
    #[doc = include_str!("coming-from/go.md")]
    pub struct Go;
    #[doc = include_str!("coming-from/loom.md")]
    pub struct Loom;
    #[doc = include_str!("coming-from/python.md")]
    pub struct Python;
    #[doc = include_str!("coming-from/tokio.md")]
    pub struct Tokio;
}

#[cfg(doctest)]
mod pages {
    #[doc = include_str!("start/fifteen-minutes.md")]
    pub struct FifteenMinutes;
    #[doc = include_str!("../README.md")]
    pub struct Readme;
    #[doc = include_str!("seeing-inside.md")]
    pub struct SeeingInside;
    #[doc = include_str!("settings.md")]
    pub struct Settings;
    #[doc = include_str!("structured-concurrency.md")]
    pub struct StructuredConcurrency;
}
