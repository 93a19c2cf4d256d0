//! What the runtime asks the runner for during a call: memory, clocks and random bytes.

use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wasmtime::ResourceLimiter;
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};
use wp_codebox_contracts::{WasiGrant, WasiTool};

/// Bytes that one element of a table takes at most.
const ELEMENT: usize = 16;
/// Step of the clock of a tool without the grant for clocks, in nanoseconds.
const STEP: u64 = 1_000_000;
/// Seed of the random bytes of a tool without the grant for random bytes.
const SEED: &[u8] = b"wp-codebox-wasi random bytes of a tool without the grant, version 1";

/// Counts the memory of a call. A growth over the limit ends the call: an allocator that gets no
/// memory aborts anyway, and then only a trap without a reason would be left.
#[derive(Debug)]
pub struct Memory {
    left: u64,
    exceeded: bool,
}

impl Memory {
    /// Creates a counter with `limit` bytes.
    pub const fn new(limit: u64) -> Self {
        Self {
            left: limit,
            exceeded: false,
        }
    }

    /// Returns whether the call wanted more than its limit.
    pub const fn exceeded(&self) -> bool {
        self.exceeded
    }

    fn grow(&mut self, current: usize, desired: usize, unit: usize) -> wasmtime::Result<bool> {
        let bytes = desired.saturating_sub(current).saturating_mul(unit) as u64;
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(true)
            }
            None => {
                self.exceeded = true;
                Err(wasmtime::Error::msg("too much memory"))
            }
        }
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // The module's own maximum is no error of the call: the module gets -1 from memory.grow.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current, desired, 1)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current, desired, ELEMENT)
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        16
    }
}

/// Clock that advances by [`STEP`] with each reading. Clones share their time.
#[derive(Debug, Clone, Default)]
struct StepClock(Arc<AtomicU64>);

impl HostWallClock for StepClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(STEP)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(HostMonotonicClock::now(self))
    }
}

impl HostMonotonicClock for StepClock {
    fn resolution(&self) -> u64 {
        STEP
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(STEP, Ordering::SeqCst)
    }
}

/// Replaces the clocks and random generators that the tool is not granted.
pub fn set_grants(builder: &mut WasiCtxBuilder, tool: &WasiTool) {
    if !tool.has(WasiGrant::Clock) {
        let clock = StepClock::default();
        builder.wall_clock(clock.clone()).monotonic_clock(clock);
    }
    if !tool.has(WasiGrant::Random) {
        builder
            .secure_random(Deterministic::new(seeded(0)))
            .insecure_random(Deterministic::new(seeded(1)))
            .insecure_random_seed(0);
    }
}

/// Returns 64 KiB of pseudo-random bytes, always the same for equal `number`. The generator repeats
/// them endlessly.
fn seeded(number: u8) -> Vec<u8> {
    (0..2048_u32)
        .flat_map(|block| {
            let mut digest = Sha256::new();
            digest.update(SEED);
            digest.update([number]);
            digest.update(block.to_be_bytes());
            digest.finalize()
        })
        .collect()
}
