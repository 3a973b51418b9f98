//! What indexes of neighbours alone can be asked, in each configuration: a brute-force oracle, and threads.

mod agreement;
mod threads;
