//! `join` waits for jobs that came after it: threadpool #89, mended in 1.7.1.

use pirn_sim::Sim;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use threadpool::ThreadPool;

#[test]
fn a_join_waits_for_the_jobs_before_it_only() {
    published::is_found("threadpool 1.7.0, #89", Sim::new(), || {
        let pool = ThreadPool::new(2);
        pool.execute(|| thread::sleep(Duration::from_secs(1))); // Until both threads join.
        let both = Arc::new(Barrier::new(2));
        let threads = [(); 2].map(|()| {
            let (pool, both) = (pool.clone(), Arc::clone(&both));
            thread::spawn(move || {
                pool.join();
                pool.execute(move || drop(both.wait()));
            })
        });
        threads.into_iter().for_each(|it| it.join().unwrap());
        pool.join();
    });
}
