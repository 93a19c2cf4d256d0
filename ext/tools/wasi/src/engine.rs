//! The runtime's settings, and the key that says which compiled code this runner can load.

use crate::error::RunnerError;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use wasmtime::{Config, Engine, ModuleVersionStrategy};

/// Stack of a module in bytes; deeper recursion is a trap.
const STACK: usize = 512 << 10;

/// Creates the engine. WebAssembly proposals that make results depend on the host (threads, relaxed
/// SIMD with the host's rounding, the payload of a NaN) are off or made deterministic.
pub fn engine() -> Result<Engine, RunnerError> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(true);
    // By default, the runtime accepts compiled code of every release with the same major version.
    // A security fix in the compiler must not be bypassed by code of an older patch release.
    config
        .module_version(ModuleVersionStrategy::Custom(version().to_owned()))
        .map_err(RunnerError::while_doing("setting up the runtime"))?;
    Engine::new(&config).map_err(RunnerError::while_doing("setting up the runtime"))
}

/// Returns the version of wasmtime that this program was built with, from its lock file.
pub fn version() -> &'static str {
    include_str!("../Cargo.lock")
        .split_once("name = \"wasmtime\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

/// Returns the key of the engine's compiled code, a file name: the version of wasmtime, the
/// architecture, and a digest of target, settings and processor features. Code that one runner
/// compiled can be loaded by another runner if and only if their keys are equal.
pub fn key(engine: &Engine) -> String {
    let mut digest = KeyHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut digest);
    let mut key = format!("{}-{}-", version(), std::env::consts::ARCH);
    for byte in &digest.0.finalize()[..16] {
        // Writing to a String cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

/// Feeds what the engine hashes into SHA-256: the standard library's hasher may change between
/// releases of Rust, and its 64 bits are too few for a name.
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest
            .iter()
            .take(8)
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiled code can be loaded only by a runner with the same engine key.
    #[test]
    fn engine_key_is_a_file_name_with_the_version_and_the_same_each_time() {
        let first = key(&engine().unwrap());
        assert_eq!(first, key(&engine().unwrap()));
        assert!(first.starts_with("36."), "{first}");
        assert!(
            first
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)),
            "{first}"
        );
    }
}
