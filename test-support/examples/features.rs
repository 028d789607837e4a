//! Does nothing. `make build` builds it, because cargo then gives libraries the features that tests need, so that
//! `make test` does not compile them again.

fn main() {}
