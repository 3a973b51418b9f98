//! The time that commands are reported to take: the device's, or that of the model of operations per second.

use std::sync::{Arc, Mutex};

use nandex::device::Device;

use crate::drive::lock;
use crate::iops::{IopsModel, IopsParameters, MODEL_VALUE_BYTES_MAX, ModelledOperation};
use crate::{Error, Result};

/// The time that commands are reported to take.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it in a drive, and it is passed once"
)]
pub enum Timing {
    /// The device's time: virtual on a simulated one, the wall clock on a real one.
    #[default]
    Device,
    /// The time of OpenMPDK's emulator. Commands do not take longer: the time is only added up and reported.
    Iops(IopsParameters),
}

/// Reports the time of commands.
#[derive(Debug)]
pub(crate) struct Clock {
    device: Arc<dyn Device>,
    model: Mutex<Option<Modelled>>,
}

#[derive(Debug)]
struct Modelled {
    model: IopsModel,
    now_ns: u64,
}

impl Clock {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), model: Mutex::default() }
    }

    pub(crate) fn set(&self, timing: Timing) {
        *lock(&self.model) = match timing {
            Timing::Device => None,
            Timing::Iops(parameters) => {
                Some(Modelled { model: IopsModel::new(parameters), now_ns: 0 })
            }
        };
    }

    /// Rejects a value for which the model has no answer.
    pub(crate) fn check_value(&self, value_bytes: u64) -> Result<()> {
        if value_bytes > MODEL_VALUE_BYTES_MAX && lock(&self.model).is_some() {
            return Err(Error::ModelRange { value_bytes, max: MODEL_VALUE_BYTES_MAX });
        }
        Ok(())
    }

    /// Returns the nanoseconds since a fixed moment.
    pub(crate) fn now_ns(&self) -> u64 {
        match &*lock(&self.model) {
            Some(modelled) => modelled.now_ns,
            None => self.device.now(),
        }
    }

    /// Adds the time of an operation, if the model is used. Values that were stored while no model was selected may be
    /// too long for it; they are rejected.
    pub(crate) fn pass(&self, operation: ModelledOperation, value_bytes: u64) -> Result<()> {
        if let Some(modelled) = &mut *lock(&self.model) {
            modelled.now_ns += modelled.model.next_ns(operation, value_bytes)?;
        }
        Ok(())
    }
}
