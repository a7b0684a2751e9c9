//! Random numbers: the operating system's, and Python's seeded ones.

use num_bigint::BigInt;

use crate::template::error::{Result, TemplateError};
use crate::value::Value;

fn integer(value: &Value) -> Option<BigInt> {
    match value {
        Value::Big(number) => Some(number.as_ref().clone()),
        other => other.as_int().map(BigInt::from),
    }
}

/// A random number below `limit` from the operating system.
pub fn random_below(limit: u64) -> Result<u64> {
    if limit == 0 {
        return Err(TemplateError::failed("cannot choose from nothing"));
    }
    // numbers above the last whole multiple would favour the small ones
    let ceiling = u64::MAX - u64::MAX % limit;
    loop {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| TemplateError::failed(format!("no random numbers: {error}")))?;
        let number = u64::from_le_bytes(bytes);
        if number < ceiling {
            return Ok(number % limit);
        }
    }
}

/// The magnitude of Python's hash of a float: its value modulo the prime 2^61 - 1.
fn float_hash(number: f64) -> num_bigint::BigUint {
    const PRIME: u64 = (1 << 61) - 1;
    if !number.is_finite() {
        return if number.is_nan() { 0u32.into() } else { 314_159u32.into() };
    }
    let bits = number.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    // two to the 61st is one, so that a power of two turns the bits
    let turn = exponent.rem_euclid(61) as u32;
    let wide = u128::from(mantissa % PRIME) << turn;
    num_bigint::BigUint::from((wide % u128::from(PRIME)) as u64)
}

/// Python's `random.Random(seed)`: the Mersenne Twister MT19937, seeded as Python seeds it.
pub struct Twister {
    state: [u32; 624],
    index: usize,
}

impl Twister {
    /// Seeds from a value as `random.seed(value)` (version 2) does.
    pub fn seeded(seed: &Value) -> Result<Twister> {
        let number = match seed {
            Value::Str(text) => {
                use sha2::Digest;
                let mut bytes = text.as_str().as_bytes().to_vec();
                let digest = sha2::Sha512::digest(&bytes);
                bytes.extend_from_slice(&digest);
                num_bigint::BigUint::from_bytes_be(&bytes)
            }
            Value::Float(number) => float_hash(*number),
            other => match integer(other) {
                Some(number) => number.magnitude().clone(),
                None => {
                    return Err(TemplateError::failed(format!(
                        "a seed must be a text or a number, not {}",
                        other.type_name()
                    )));
                }
            },
        };
        let mut key = number.to_u32_digits();
        if key.is_empty() {
            key.push(0);
        }
        Ok(Self::by_array(&key))
    }

    fn by_number(seed: u32) -> Twister {
        let mut state = [0; 624];
        state[0] = seed;
        for index in 1..624 {
            let before: u32 = state[index - 1];
            state[index] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(index as u32);
        }
        Twister { state, index: 624 }
    }

    fn by_array(key: &[u32]) -> Twister {
        let mut twister = Self::by_number(19_650_218);
        let state = &mut twister.state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..key.len().max(624) {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ (before >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j += 1;
            if i >= 624 {
                state[0] = state[623];
                i = 1;
            }
            if j >= key.len() {
                j = 0;
            }
        }
        for _ in 0..623 {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ (before >> 30)).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i >= 624 {
                state[0] = state[623];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        twister
    }

    fn next(&mut self) -> u32 {
        if self.index >= 624 {
            for k in 0..624 {
                let y = (self.state[k] & 0x8000_0000) | (self.state[(k + 1) % 624] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[k] = self.state[(k + 397) % 624] ^ (y >> 1) ^ twist;
            }
            self.index = 0;
        }
        let mut y = self.state[self.index];
        self.index += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// A number below `limit`, as `_randbelow` draws it.
    pub fn below(&mut self, limit: u64) -> Result<u64> {
        if limit == 0 {
            return Err(TemplateError::failed("cannot choose from nothing"));
        }
        let bits = u64::BITS - limit.leading_zeros();
        loop {
            let number = if bits <= 32 {
                u64::from(self.next() >> (32 - bits))
            } else {
                let low = u64::from(self.next());
                low | (u64::from(self.next() >> (64 - bits)) << 32)
            };
            if number < limit {
                return Ok(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From CPython: `random.Random('node1').randrange(60)` and `random.Random(42)`.
    #[test]
    fn random_numbers_are_pythons() {
        assert_eq!(Twister::seeded(&"node1".into()).and_then(|mut twister| twister.below(60)).ok(), Some(36));
        let mut twister = Twister::seeded(&42.into()).expect("seed");
        let drawn: Vec<u64> = (0..5).filter_map(|_| twister.below(100).ok()).collect();
        assert_eq!(drawn, [81, 14, 3, 94, 35]);
    }
}
