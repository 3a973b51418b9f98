//! The command, as a user calls it: one program, so that the code shared by the verbs' tests is built and linked once.
#![forbid(unsafe_code)]

/// The command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_nandex");

mod any_size;
mod array;
mod backup;
mod block_device;
mod common;
mod count;
mod count_keys;
mod damage;
mod dedup;
mod docs;
mod file_bytes;
mod filter;
mod info;
mod kinds;
mod kvssd;
mod merge;
mod neardup;
mod numbers;
mod opening;
mod output_files;
mod outputs;
mod tables;
mod tfidf;
mod unfinished;
mod updates;
mod usage;
mod verbs;
mod wan;
mod wan_proxy;
