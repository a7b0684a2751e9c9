//! Tickets for BIOS changes: what the running system shows, compared with what is wanted, written for the data centre.
//!
//! Firmware is never changed from here.

pub mod compare;
pub mod csv;
pub mod dmidecode;
pub mod files;
pub mod markdown;
pub mod observation;
pub mod observe;
mod plan_text;
pub mod profile;
pub mod record;
pub mod ticket;
