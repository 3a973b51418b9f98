//! The crash-safe substrate that every structure of nandex stands on.
#![forbid(unsafe_code)]
