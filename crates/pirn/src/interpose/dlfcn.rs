//! dlfcn
