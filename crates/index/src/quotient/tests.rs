//! Tests of quotient filters, compared with a map of counts and with the paper's layout.

mod laws;
mod layout;
mod oracle;
mod serial;
mod shared;
mod updates;
