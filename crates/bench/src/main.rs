//! `nandex-bench`: the figures nandex is judged by.

fn main() {}
