//! Tests of quotient filters against a map of counts.

mod example;
mod laws;
mod merge;
mod metadata;
mod oracle;
mod serial;
mod shared;
