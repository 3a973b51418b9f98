//! Tests of quotient filters against a map of counts, and against the paper's layout.

mod laws;
mod layout;
mod oracle;
mod serial;
mod shared;
mod updates;
