//! Results of `wordpress.bench`: their summary and comparison, and the plan and document of a matrix,
//! which measures a recipe with several combinations of values.

mod artifacts;
mod comparison;
mod matrix;
mod plan;
mod scenario;
mod summary;

pub use artifacts::benchmark_artifacts;
pub use comparison::{Side, comparison, comparison_rows};
pub use matrix::{add_result, matrix_document, skipped_row};
pub use plan::{Cell, Dimension, cells, dimensions};
pub use scenario::{BenchResult, Scenario, Statistics, only, results};
pub use summary::{summary, summary_rows};
