//! Tests of indexes of neighbours alone, in each configuration: a brute-force oracle, and threads.

mod agreement;
mod threads;
