//! The registry of interposed names.
//!
//! Each file lists its interposed functions in one [`interposed!`] table at its head, sorted by
//! what happens on a virtual thread ([`Disposition`]). The table defines simple functions
//! completely; the others are only listed, and written by hand below it:
//!
//! ```text
//! interposed! {
//!     family "Locks on files" for Scaling, cannot "notice deadlocks between processes";
//!     Parks by hand { flock, lockf: "a remark" }
//!     Parks as { fn lockf64(fd: c_int, command: c_int, length: off_t) -> c_int
//!         = lockf(fd, command, length); }
//!     Pool { fn chmod(path: Path, mode: mode_t) -> c_int = SYS_chmod(path, mode); }
//! }
//! ```
//!
//! | section | defines |
//! |---|---|
//! | `Pool { fn … = SYS_name(values); }` | a system call, on the pool |
//! | `Pool { fn …; }` | libc's own function, on the pool |
//! | `Pool then noted { fn …; }` | the same; its result goes through `noted` |
//! | `Cached { fn … = SYS_name(values) if at_hand; }` | a system call; unless `at_hand`, on the pool |
//! | `Dedicated { fn …; }` | libc's own function, on a platform thread of its own |
//! | `Carrier { fn …; }` | libc's own function, with the carrier's thread pointer |
//! | `Anything as { fn … = expression; }` | a function that evaluates the (`unsafe`) expression, in which `libcs!()` calls libc's own function |
//! | `Anything alias { name = other, … }` | another name of a function |
//! | `Anything variadic { name(2 named) = other, … }` | a variadic function, by the one that takes a `va_list` |
//! | `Anything by hand { name, name: "remark" }` | nothing |
//!
//! The tables are the source of the check at start that these definitions win ([`startup`]), of the
//! page `docs/interposed.md`, and of the tests that each name is exported and tested. The check
//! refers to every function. So a linker that takes single object files out of an archive (of a
//! Rust static library, in a C program) takes all of them.
//!
//! [`startup`]: crate::startup

use core::ffi::{CStr, c_void};

/// What happens when a virtual thread calls a function.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))] // Read when the page is written.
pub(crate) enum Disposition {
    /// The same as on a platform thread: it does not wait.
    Kernel,
    /// Tries without blocking, and parks until it may try again.
    Parks,
    /// Works on the virtual thread's own data, without a system call that could block.
    Own,
    /// Runs on the carrier if the kernel has all it needs at hand, else on the pool.
    Cached,
    /// Runs on the bounded pool of platform threads, while the virtual thread parks.
    Pool,
    /// Runs on a platform thread of its own, while the virtual thread parks.
    Dedicated,
    /// Runs as the carrier, with its thread pointer.
    Carrier,
    /// The same as on a platform thread, and may block the carrier.
    Blocks,
    /// Fails.
    Refuses,
}

/// The loss if another definition wins over ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A wake, the truth about a descriptor, or memory is lost: the runtime does not start.
    Correctness,
    /// A carrier is lost for as long as a call blocks it.
    Scaling,
}

/// An interposed function.
pub(crate) struct Interposed {
    pub(crate) name: &'static CStr,
    /// Our definition.
    #[cfg_attr(not(any(test, feature = "dump")), allow(dead_code))] // Read by dumps.
    pub(crate) address: *const c_void,
    #[cfg_attr(not(test), allow(dead_code))] // Read when the page is written.
    pub(crate) disposition: Disposition,
    /// A further note, or empty.
    #[cfg_attr(not(test), allow(dead_code))] // Read when the page is written.
    pub(crate) remark: &'static str,
}

// SAFETY: the address is only compared.
unsafe impl Sync for Interposed {}

/// The functions of one file.
pub(crate) struct Family {
    #[cfg_attr(not(test), allow(dead_code))] // Read when the page is written.
    pub(crate) title: &'static str,
    pub(crate) need: Need,
    /// What these functions cannot do, or empty.
    #[cfg_attr(not(test), allow(dead_code))] // Read when the page is written.
    pub(crate) cannot: &'static str,
    /// The functions, by section.
    pub(crate) sections: &'static [&'static [Interposed]],
}

/// Lists a file's interposed functions, and defines some of them. See the module's documentation.
macro_rules! interposed {
    (family $($rest:tt)*) => {
        $crate::registry::interposed! {
            /// This file's interposed functions.
            FAMILY: family $($rest)*
        }
    };
    (
        $(#[$doc:meta])* $family:ident: family $title:literal for $need:ident $(, cannot $cannot:literal)?;
        $($how:ident $($kind:ident)* { $($items:tt)* })*
    ) => {
        $( $crate::registry::interposed!(@define $how [$($kind)*] $($items)*); )*

        $(#[$doc])*
        pub(crate) const $family: $crate::registry::Family = {
            use $crate::registry::{Disposition, Family, Need, interposed};
            Family {
                title: $title,
                need: Need::$need,
                cannot: concat!("" $(, $cannot)?),
                sections: &[ $( interposed!(@list $how [$($kind)*] $($items)*) ),* ],
            }
        };
    };

    // Definitions.
    (@define $how:ident [by hand] $($listed:tt)*) => {};
    (@define $how:ident [as] $(
        $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty = $value:expr;
    )*) => {$(
        $crate::registry::interposed! {
            @function [$($doc),*] $name($($arg: $ty),*) -> $ret {
                #[allow(unused_macros)]
                macro_rules! libcs {
                    () => {
                        pirn_rt::glibc::symbols::real!(fn $name($($arg: $ty),*) -> $ret)
                    };
                }
                $value
            }
        }
    )*};
    (@define $how:ident [alias] $($name:ident = $other:path),* $(,)?) => {$(
        pirn_rt::arch::forward_to! {
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for libc's function of this name.
            $name => $other
        }
    )*};
    (@define $how:ident [variadic] $($name:ident($named:tt named) = $other:path),* $(,)?) => {$(
        pirn_rt::arch::forward_variadic! {
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for libc's function of this name.
            $name($named named) => $other
        }
    )*};
    (@define Cached [] $(
        $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty
            = $number:ident($($value:expr),*) if $at_hand:expr;
    )*) => {$(
        $crate::registry::interposed! {
            @function [$($doc),*] $name($($arg: $ty),*) -> $ret {
                pirn_rt::sched::simulation::point(pirn_rt::sched::simulation::Point::Call);
                let args = $crate::forward::args([$($value as usize),*]);
                $crate::forward::if_cached(
                    $crate::registry::c_name!($name), || $at_hand, libc::$number, args,
                ) as $ret
            }
        }
    )*};
    (@define Pool [then $then:ident] $(
        $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;
    )*) => {$(
        $crate::registry::interposed! {
            @function [$($doc),*] $name($($arg: $ty),*) -> $ret {
                $then($crate::registry::interposed!(
                    @call Pool $name($($arg: $ty),*) -> $ret
                ))
            }
        }
    )*};
    (@define $how:ident [] $(
        $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty
            $(= $number:ident($($value:expr),*))?;
    )*) => {$(
        $crate::registry::interposed! {
            @function [$($doc),*] $name($($arg: $ty),*) -> $ret {
                $crate::registry::interposed!(
                    @call $how $name($($arg: $ty),*) -> $ret $(= $number($($value),*))?
                )
            }
        }
    )*};
    (@function [$($doc:meta),*] $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        $(#[$doc])*
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[allow(unused_unsafe)] // Some expressions are safe.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's contract.
            unsafe { $body }
        }
    };
    (@call Pool $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $number:ident($($value:expr),*)) => {{
        pirn_rt::sched::simulation::point(pirn_rt::sched::simulation::Point::Call);
        let args = $crate::forward::args([$($value as usize),*]);
        let name = $crate::registry::c_name!($name);
        $crate::forward::bounded_call(name, libc::$number, args) as $ret
    }};
    (@call Pool $name:ident $($signature:tt)*) => {
        pirn_rt::blocking::pool::bounded(
            pirn_rt::vthread::wait_reason::WaitReason::call($crate::registry::c_name!($name)),
            || pirn_rt::glibc::symbols::real!(fn $name $($signature)*),
        )
    };
    (@call Carrier $($signature:tt)*) => {
        $crate::forward::on_carrier(|| pirn_rt::glibc::symbols::real!(fn $($signature)*))
    };
    (@call Dedicated $name:ident $($signature:tt)*) => {
        $crate::forward::dedicated_call(
            $crate::registry::c_name!($name),
            || pirn_rt::glibc::symbols::real!(fn $name $($signature)*),
        )
    };

    // Lists.
    (@list $how:ident [by hand] $($name:ident $(: $remark:literal)?),* $(,)?) => {
        &[$( interposed!(@entry $how $name concat!("" $(, $remark)?)) ),*]
    };
    (@list $how:ident [alias] $($name:ident = $other:path),* $(,)?) => {
        &[$( interposed!(@entry $how $name "") ),*]
    };
    (@list $how:ident [variadic] $($name:ident($named:tt named) = $other:path),* $(,)?) => {
        &[$( interposed!(@entry $how $name "") ),*]
    };
    (@list $how:ident [as] $(
        $(#[$doc:meta])* fn $name:ident($($signature:tt)*) -> $ret:ty = $value:expr;
    )*) => {
        &[$( interposed!(@entry $how $name "") ),*]
    };
    (@list $how:ident [$(then $then:ident)?] $(
        $(#[$doc:meta])* fn $name:ident($($signature:tt)*) -> $ret:ty
            $(= $number:ident($($values:tt)*) $(if $at_hand:expr)?)?;
    )*) => {
        &[$( interposed!(@entry $how $name "") ),*]
    };
    (@entry $how:ident $name:ident $remark:expr) => {
        $crate::registry::Interposed {
            name: $crate::registry::c_name!($name),
            address: $name as *const core::ffi::c_void,
            disposition: Disposition::$how,
            remark: $remark,
        }
    };
}
pub(crate) use interposed;

/// Returns an identifier as a constant C string.
macro_rules! c_name {
    ($name:ident) => {
        const {
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes())
            {
                Ok(name) => name,
                Err(_) => panic!(),
            }
        }
    };
}
pub(crate) use c_name;

#[cfg(test)]
mod tests;
