//! Several devices under one table, and their use (ANCS'14, section 5.3).

use crate::{Error, Result};

/// The use of several devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayDesign {
    /// Throughput-oriented: each part of the keys is on one device, which multiplies the operations per second.
    Throughput,
    /// Memory-oriented: each part of the keys is on all devices, which are read at once, so that the same RAM suffices
    /// for a multiple of the entries.
    Memory,
}

/// Devices of a table, and their use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceArray {
    /// Their use.
    pub design: ArrayDesign,
    /// Their number, 2 to 64. All devices are alike.
    pub devices: u32,
}

impl DeviceArray {
    /// Fails for numbers that no array has.
    ///
    /// # Errors
    /// [`Error::Config`], naming the number.
    pub fn check(&self) -> Result<()> {
        if (2..=64).contains(&self.devices) {
            return Ok(());
        }
        let reason = format!("{} for a design of several; give 2 to 64", self.devices);
        Err(Error::Config { field: "devices", reason })
    }

    /// Returns the number of devices that one lookup reads at once.
    pub(crate) const fn read_at_once(&self) -> u32 {
        match self.design {
            ArrayDesign::Throughput => 1,
            ArrayDesign::Memory => self.devices,
        }
    }
}
