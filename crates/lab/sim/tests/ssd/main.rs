//! The SSD model: laws of queues, laws of flash, and the same run every time.

mod cleaning;
mod flash;
mod latency;
mod memory;
mod queueing;
mod repeat;
mod support;
