//! Placeholder until the first slice lands.

fn main() {}
