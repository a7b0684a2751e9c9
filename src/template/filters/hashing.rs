//! Filters about hashes and hashed passwords.

use md5::Digest;

use super::{Filter, bcrypt};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::python::random_below;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["hash"], &["value", "hashtype"], "the hash of the text: sha1, sha256, md5, …", |call| {
        hash(&call.text()?, &call.text_or(1, "sha1")?).map(Value::from)
    }),
    entry(&["checksum"], &["value"], "the SHA-1 of the text", |call| hash(&call.text()?, "sha1").map(Value::from)),
    entry(&["sha1"], &["value"], "the SHA-1 of the text", |call| hash(&call.text()?, "sha1").map(Value::from)),
    entry(&["md5"], &["value"], "the MD5 of the text", |call| hash(&call.text()?, "md5").map(Value::from)),
    entry(
        &["password_hash"],
        &["value", "hashtype", "salt", "salt_size", "rounds", "ident"],
        "hashed for /etc/shadow",
        password_hash,
    ),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(text: &str, kind: &str) -> Result<String> {
    let bytes = text.as_bytes();
    Ok(match kind.to_ascii_lowercase().replace('-', "").as_str() {
        "sha1" => hex(&sha1::Sha1::digest(bytes)),
        "sha224" => hex(&sha2::Sha224::digest(bytes)),
        "sha256" => hex(&sha2::Sha256::digest(bytes)),
        "sha384" => hex(&sha2::Sha384::digest(bytes)),
        "sha512" => hex(&sha2::Sha512::digest(bytes)),
        "md5" => hex(&md5::Md5::digest(bytes)),
        _ => {
            return Err(TemplateError::failed(format!(
                "unsupported hash type {kind}, known are md5, sha1, sha224, sha256, sha384 and sha512"
            )));
        }
    })
}

/// Digits of the crypt formats' own base 64.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn password_hash(call: &Call<'_>) -> Result<Value> {
    let text =
        |index: usize| call.given(index).map(|value| text_of(value).map(std::borrow::Cow::into_owned)).transpose();
    let number = |index: usize| call.given(index).map(|_| call.required_int(index)).transpose();
    let options = HashOptions { salt: text(2)?, salt_size: number(3)?, rounds: number(4)?, ident: text(5)? };
    hash_password(&call.text()?, &call.text_or(1, "sha512")?, &options).map(Value::from)
}

/// How a password is hashed; what is not set is chosen as Ansible does.
#[derive(Default)]
pub struct HashOptions {
    pub salt: Option<String>,
    pub salt_size: Option<i64>,
    pub rounds: Option<i64>,
    /// Which bcrypt: `2b`, `2a` or `2y`.
    pub ident: Option<String>,
}

/// Names of algorithms that passlib knows and Ansible does not offer.
const NOT_OFFERED: &[&str] = &[
    "apr_md5_crypt",
    "bsdi_crypt",
    "cisco_asa",
    "cisco_pix",
    "crypt16",
    "des_crypt",
    "hex_md5",
    "hex_sha1",
    "hex_sha256",
    "hex_sha512",
    "lmhash",
    "msdcc",
    "msdcc2",
    "mssql2000",
    "mssql2005",
    "mysql323",
    "mysql41",
    "nthash",
    "oracle10",
    "oracle11",
    "pbkdf2_sha256",
    "pbkdf2_sha512",
    "phpass",
    "postgres_md5",
    "scram",
    "scrypt",
    "sha1_crypt",
    "sun_md5_crypt",
];

/// The algorithm of a name, and the most digits that its salt can have.
fn algorithm(kind: &str) -> Result<(Crypt, usize)> {
    Ok(match kind {
        "sha512" | "sha512_crypt" => (Crypt::Sha512, 16),
        "sha256" | "sha256_crypt" => (Crypt::Sha256, 16),
        "md5" | "md5_crypt" => (Crypt::Md5, 8),
        "blowfish" | "bcrypt" => (Crypt::Blowfish, bcrypt::SALT_DIGITS),
        known if NOT_OFFERED.contains(&known) => {
            return Err(TemplateError::as_ansible(format!(
                "{known} is not in the list of supported passlib algorithms: md5, blowfish, sha256, sha512"
            )));
        }
        other => {
            let near = crate::error::nearest(other, ["md5", "blowfish", "sha256", "sha512"]);
            let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            return Err(TemplateError::failed(format!(
                "does not support '{other}' algorithm, known are md5, blowfish, sha256 and sha512{hint}"
            )));
        }
    })
}

/// A random salt as an algorithm wants it.
pub fn hash_salt(kind: &str) -> Result<String> {
    random_salt(algorithm(kind)?.1)
}

fn random_salt(size: usize) -> Result<String> {
    let mut salt = String::new();
    for _ in 0..size {
        salt.push(char::from(DIGITS[random_below(64)? as usize]));
    }
    Ok(salt)
}

/// Hashes a password for /etc/shadow.
pub fn hash_password(password: &str, kind: &str, options: &HashOptions) -> Result<String> {
    let (algorithm, longest) = algorithm(kind)?;
    let size = options.salt_size.map_or(longest, |size| usize::try_from(size).unwrap_or(0).clamp(1, longest));
    let salt = match &options.salt {
        Some(salt) => salt.clone(),
        None => random_salt(size)?,
    };
    // more would take minutes
    let most = if let Crypt::Blowfish = algorithm { 18 } else { 20_000_000 };
    if let Some(rounds) = options.rounds.filter(|rounds| *rounds > most) {
        return Err(TemplateError::failed(format!("{rounds} rounds take too long, {most} are the most")));
    }
    let rounds = |least: u32| options.rounds.map(|rounds| u32::try_from(rounds).unwrap_or(0).max(least));
    if let Crypt::Blowfish = algorithm {
        let ident = options.ident.as_deref().unwrap_or("2b");
        if !matches!(ident, "2" | "2a" | "2b" | "2y") {
            return Err(TemplateError::failed(format!("`{ident}` is no kind of bcrypt, known are 2b, 2a and 2y")));
        }
        return bcrypt::hash(ident, password.as_bytes(), &salt, rounds(4).unwrap_or(12))
            .ok_or_else(|| TemplateError::failed(format!("the salt must be {longest} letters, digits, `.` or `/`")));
    }
    if salt.len() > longest || !salt.bytes().all(|byte| DIGITS.contains(&byte)) {
        return Err(TemplateError::failed(format!("the salt must be at most {longest} letters, digits, `.` or `/`")));
    }
    let rounds = rounds(1000);
    let (password, salt_bytes) = (password.as_bytes(), salt.as_bytes());
    Ok(match algorithm {
        Crypt::Md5 => format!("$1${salt}${}", md5_crypt(password, salt_bytes)),
        Crypt::Sha256 => sha_crypt::<sha2::Sha256>("5", password, &salt, rounds.unwrap_or(535_000), &SHA256_ORDER),
        // bcrypt was made above
        Crypt::Sha512 | Crypt::Blowfish => {
            sha_crypt::<sha2::Sha512>("6", password, &salt, rounds.unwrap_or(656_000), &SHA512_ORDER)
        }
    })
}

enum Crypt {
    Md5,
    Blowfish,
    Sha256,
    Sha512,
}

/// Which bytes of the digest make each group of four digits.
const SHA512_ORDER: [[usize; 3]; 21] = [
    [0, 21, 42],
    [22, 43, 1],
    [44, 2, 23],
    [3, 24, 45],
    [25, 46, 4],
    [47, 5, 26],
    [6, 27, 48],
    [28, 49, 7],
    [50, 8, 29],
    [9, 30, 51],
    [31, 52, 10],
    [53, 11, 32],
    [12, 33, 54],
    [34, 55, 13],
    [56, 14, 35],
    [15, 36, 57],
    [37, 58, 16],
    [59, 17, 38],
    [18, 39, 60],
    [40, 61, 19],
    [62, 20, 41],
];
const SHA256_ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

fn push_digits(out: &mut String, mut group: u32, count: usize) {
    for _ in 0..count {
        out.push(char::from(DIGITS[(group & 0x3f) as usize]));
        group >>= 6;
    }
}

/// SHA-crypt as U. Drepper specified it ("Unix crypt using SHA-256 and SHA-512").
fn sha_crypt<D: Digest>(prefix: &str, password: &[u8], salt: &str, rounds: u32, order: &[[usize; 3]]) -> String {
    let salt_bytes = salt.as_bytes();
    let once = |parts: &[&[u8]]| -> Vec<u8> {
        let mut hash = D::new();
        for part in parts {
            hash.update(part);
        }
        hash.finalize().to_vec()
    };
    let repeated = |digest: &[u8], length: usize| -> Vec<u8> { digest.iter().copied().cycle().take(length).collect() };
    let b = once(&[password, salt_bytes, password]);
    let mut a = D::new();
    a.update(password);
    a.update(salt_bytes);
    a.update(repeated(&b, password.len()));
    let mut length = password.len();
    while length > 0 {
        if length & 1 == 1 {
            a.update(&b)
        } else {
            a.update(password)
        }
        length >>= 1;
    }
    let mut digest = a.finalize().to_vec();
    let mut dp = D::new();
    for _ in 0..password.len() {
        dp.update(password);
    }
    let p = repeated(&dp.finalize(), password.len());
    let mut ds = D::new();
    for _ in 0..16 + usize::from(digest[0]) {
        ds.update(salt_bytes);
    }
    let s = repeated(&ds.finalize(), salt_bytes.len());
    for round in 0..rounds {
        let mut hash = D::new();
        if round & 1 == 1 {
            hash.update(&p)
        } else {
            hash.update(&digest)
        }
        if round % 3 != 0 {
            hash.update(&s);
        }
        if round % 7 != 0 {
            hash.update(&p);
        }
        if round & 1 == 1 {
            hash.update(&digest)
        } else {
            hash.update(&p)
        }
        digest = hash.finalize().to_vec();
    }
    let mut text = String::new();
    for [high, middle, low] in order {
        let group = u32::from(digest[*high]) << 16 | u32::from(digest[*middle]) << 8 | u32::from(digest[*low]);
        push_digits(&mut text, group, 4);
    }
    match digest.len() {
        64 => push_digits(&mut text, u32::from(digest[63]), 2),
        _ => push_digits(&mut text, u32::from(digest[31]) << 8 | u32::from(digest[30]), 3),
    }
    // 5000 is what the format means when it names no number
    let rounds = if rounds == 5000 { String::new() } else { format!("rounds={rounds}$") };
    format!("${prefix}${rounds}{salt}${text}")
}

/// The MD5 crypt of FreeBSD (crypt(5)).
fn md5_crypt(password: &[u8], salt: &[u8]) -> String {
    let mut inner = md5::Md5::new();
    inner.update(password);
    inner.update(salt);
    inner.update(password);
    let inner = inner.finalize();
    let mut hash = md5::Md5::new();
    hash.update(password);
    hash.update(b"$1$");
    hash.update(salt);
    hash.update(inner.iter().copied().cycle().take(password.len()).collect::<Vec<u8>>());
    let mut length = password.len();
    while length > 0 {
        if length & 1 == 1 {
            hash.update([0])
        } else {
            hash.update(&password[..1])
        }
        length >>= 1;
    }
    let mut digest = hash.finalize().to_vec();
    for round in 0..1000 {
        let mut hash = md5::Md5::new();
        if round & 1 == 1 {
            hash.update(password)
        } else {
            hash.update(&digest)
        }
        if round % 3 != 0 {
            hash.update(salt);
        }
        if round % 7 != 0 {
            hash.update(password);
        }
        if round & 1 == 1 {
            hash.update(&digest)
        } else {
            hash.update(password)
        }
        digest = hash.finalize().to_vec();
    }
    let mut text = String::new();
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let group: u32 = u32::from(digest[high]) << 16 | u32::from(digest[middle]) << 8 | u32::from(digest[low]);
        push_digits(&mut text, group, 4);
    }
    push_digits(&mut text, u32::from(digest[11]), 2);
    text
}
