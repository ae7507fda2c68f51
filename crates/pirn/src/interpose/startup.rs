//! What must be done before the program's own code runs.
//!
//! Functions that ours shadow are looked up at their first use, by `dlsym`. Two cannot wait for
//! that.

use crate::interpose::process::dlfcn;
use crate::interpose::thread::sync::semaphore;

/// Called by the C library before `main`, among the initialisers of the program.
#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;

/// See the module's documentation. Again at the runtime's start: that refers to this file, and so
/// keeps it in the program.
pub(in crate::interpose) extern "C" fn prepare() {
    dlfcn::prepare();
    semaphore::prepare();
}
