//! `aio.h`: waiting for requests that libc's own threads perform.

use crate::cancel;
use crate::forward::from_c;
use crate::registry::interposed;
use core::ffi::c_int;
use libc::{aiocb, sigevent, timespec};
use pirn_rt::blocking::pool;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys;
use pirn_rt::vthread::awaited::Awaited;

type Requests = *const *mut aiocb;

interposed! {
    family "Asynchronous input and output" for Scaling;

    Dedicated as {
        fn aio_suspend(requests: Requests, count: c_int, timeout: *const timespec) -> c_int
            = cancel::own_point(move || {
                let wait = || from_c(real!(
                    fn aio_suspend(requests: Requests, count: c_int, timeout: *const timespec)
                        -> c_int
                ));
                sys::to_c(pool::dedicated(Awaited::call(c"aio_suspend"), wait)) as c_int
            });
        fn aio_suspend64(requests: Requests, count: c_int, timeout: *const timespec) -> c_int
            = aio_suspend(requests, count, timeout);
        fn lio_listio(mode: c_int, requests: Requests, count: c_int, event: *mut sigevent) -> c_int
            = list(mode, || real!(
                fn lio_listio(mode: c_int, requests: Requests, count: c_int, event: *mut sigevent)
                    -> c_int
            ));
        fn lio_listio64(mode: c_int, requests: Requests, count: c_int, event: *mut sigevent) -> c_int
            = list(mode, || real!(
                fn lio_listio64(mode: c_int, requests: Requests, count: c_int, event: *mut sigevent)
                    -> c_int
            ));
    }
}

/// Submits requests, and with `LIO_WAIT` waits for all of them.
fn list(mode: c_int, libc_list: impl FnOnce() -> c_int) -> c_int {
    let start = || from_c(libc_list());
    let result = if mode == libc::LIO_WAIT {
        pool::dedicated(Awaited::call(c"lio_listio"), start)
    } else {
        start()
    };
    sys::to_c(result) as c_int
}
