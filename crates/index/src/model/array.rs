//! Several devices under one table, and what they are for (ANCS'14, section 5.3).

use crate::{Error, Result};

/// What several devices are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayDesign {
    /// Throughput-oriented: each part of the keys is on one device, so that there are as many times the operations.
    Throughput,
    /// Memory-oriented: each part of the keys is on all devices, which are read at once, so that the same RAM is for as
    /// many times the entries.
    Memory,
}

/// Devices of a table, and their use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceArray {
    /// What they are for.
    pub design: ArrayDesign,
    /// How many, 2 to 64. They are alike.
    pub devices: u32,
}

impl DeviceArray {
    /// Refuses numbers that no array has.
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

    /// Devices that one lookup reads at once.
    pub(crate) const fn read_at_once(&self) -> u32 {
        match self.design {
            ArrayDesign::Throughput => 1,
            ArrayDesign::Memory => self.devices,
        }
    }
}
