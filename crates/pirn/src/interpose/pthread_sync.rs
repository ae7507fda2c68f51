//! pthread_sync
