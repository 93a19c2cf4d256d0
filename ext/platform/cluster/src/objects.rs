//! The objects of one submitter, which is all that layers, tasks and results need of a message
//! server.

use crate::bus::{Bus, BusError, ObjectName};
use crate::names::SubmitterName;
use std::io::{Read, Write};

/// Objects of one submitter. The methods are those of [`Bus`].
pub trait Objects: Send + Sync {
    /// Returns whether an object is stored completely.
    fn has(&self, name: &ObjectName) -> Result<bool, BusError>;
    /// Stores an object.
    fn put(&self, name: &ObjectName, content: &mut (dyn Read + Send)) -> Result<(), BusError>;
    /// Writes an object to `to`.
    fn get(&self, name: &ObjectName, to: &mut (dyn Write + Send)) -> Result<(), BusError>;
    /// Returns names and sizes of all objects.
    fn list(&self) -> Result<Vec<(String, u64)>, BusError>;
    /// Removes an object; removing a missing one is no error.
    fn remove(&self, name: &str) -> Result<(), BusError>;
}

/// The objects of a submitter on a message server.
#[derive(Clone, Copy)]
pub struct SubmitterObjects<'b> {
    bus: &'b dyn Bus,
    of: &'b SubmitterName,
}

impl<'b> SubmitterObjects<'b> {
    /// Returns the objects of this submitter.
    #[must_use]
    pub const fn new(bus: &'b dyn Bus, of: &'b SubmitterName) -> Self {
        Self { bus, of }
    }
}

impl std::fmt::Debug for SubmitterObjects<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SubmitterObjects").field(self.of).finish()
    }
}

impl Objects for SubmitterObjects<'_> {
    fn has(&self, name: &ObjectName) -> Result<bool, BusError> {
        self.bus.has_object(self.of, name)
    }

    fn put(&self, name: &ObjectName, content: &mut (dyn Read + Send)) -> Result<(), BusError> {
        self.bus.put_object(self.of, name, content)
    }

    fn get(&self, name: &ObjectName, to: &mut (dyn Write + Send)) -> Result<(), BusError> {
        self.bus.get_object(self.of, name, to)
    }

    fn list(&self) -> Result<Vec<(String, u64)>, BusError> {
        self.bus.objects(self.of)
    }

    fn remove(&self, name: &str) -> Result<(), BusError> {
        self.bus.remove_object(self.of, name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, MutexGuard};

    /// Objects in memory.
    #[derive(Debug, Default)]
    pub(crate) struct MemoryObjects {
        objects: Mutex<BTreeMap<String, Vec<u8>>>,
        puts: Mutex<Vec<String>>,
    }

    impl MemoryObjects {
        pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
            self.objects.lock().unwrap()
        }

        /// Returns the names that were stored since the last call, in order.
        pub(crate) fn take_puts(&self) -> Vec<String> {
            std::mem::take(&mut self.puts.lock().unwrap())
        }
    }

    impl Objects for MemoryObjects {
        fn has(&self, name: &ObjectName) -> Result<bool, BusError> {
            Ok(self.lock().contains_key(&name.to_text()))
        }

        fn put(&self, name: &ObjectName, content: &mut (dyn Read + Send)) -> Result<(), BusError> {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).unwrap();
            self.puts.lock().unwrap().push(name.to_text());
            self.lock().insert(name.to_text(), bytes);
            Ok(())
        }

        fn get(&self, name: &ObjectName, to: &mut (dyn Write + Send)) -> Result<(), BusError> {
            let found = self.lock().get(&name.to_text()).cloned();
            let bytes = found.ok_or_else(|| BusError::Missing {
                what: name.to_text(),
            })?;
            to.write_all(&bytes).map_err(|e| BusError::Full {
                detail: e.to_string(),
            })
        }

        fn list(&self) -> Result<Vec<(String, u64)>, BusError> {
            let row = |(name, bytes): (&String, &Vec<u8>)| (name.clone(), bytes.len() as u64);
            Ok(self.lock().iter().map(row).collect())
        }

        fn remove(&self, name: &str) -> Result<(), BusError> {
            self.lock().remove(name);
            Ok(())
        }
    }
}
