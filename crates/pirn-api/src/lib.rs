//! Rules about the source of pirn, checked by the tests: the public API of each package is that of
//! its snapshot, `public-api.txt`, and the layers hold.
