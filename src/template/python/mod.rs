//! Pieces of Python's library.

mod format;
mod random;

pub use format::{percent_format, str_format};
use num_bigint::BigInt;
pub use random::{Twister, random_below};

/// A float without its fraction, as Python's `int()`.
pub fn float_to_big(number: f64) -> BigInt {
    num_traits::FromPrimitive::from_f64(number.trunc()).unwrap_or_default()
}
