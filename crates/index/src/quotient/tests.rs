//! Tests of quotient filters against a map of counts.

mod oracle;
