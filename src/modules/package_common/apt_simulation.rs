//! What apt-get says it would do: the lines of `apt-get --simulate`.

/// One package that would be touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub name: String,
    /// The version before; `None`: it is new.
    pub old: Option<String>,
    /// The version after; `None`: it is removed.
    pub new: Option<String>,
    /// Its settings are removed too.
    pub purged: bool,
}

impl Item {
    pub fn is_new(&self) -> bool {
        self.old.is_none() && self.new.is_some()
    }
}

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simulation {
    pub items: Vec<Item>,
    /// Held packages that it would change.
    pub held: Vec<String>,
    /// Packages that would go back to an older version.
    pub downgraded: Vec<String>,
    /// Names that no list of packages has.
    pub missing: Vec<String>,
    /// What it says behind `E:`.
    pub errors: Vec<String>,
}

/// Reads the output and the errors of `apt-get --simulate`.
pub fn parse(output: &str, errors: &str) -> Simulation {
    let mut simulation = Simulation::default();
    let mut heading = "";
    for line in output.lines() {
        if line.starts_with(' ') {
            let names = line.split_whitespace().map(str::to_owned);
            match heading {
                "The following held packages will be changed:" => simulation.held.extend(names),
                "The following packages will be DOWNGRADED:" => simulation.downgraded.extend(names),
                _ => {}
            }
            continue;
        }
        heading = line.trim_end();
        simulation.items.extend(item(line));
    }
    for line in errors.lines().filter_map(|line| line.trim().strip_prefix("E: ")) {
        simulation.missing.extend(missing(line).map(str::to_owned));
        simulation.errors.push(line.to_owned());
    }
    simulation
}

/// `Inst name [old] (new origin [architecture])`, `Remv name [old]`, `Purg name [old]`.
fn item(line: &str) -> Option<Item> {
    let (verb, rest) = line.split_once(' ')?;
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let between = |open: &str, close: char| {
        let rest = rest.split_once(open)?.1;
        Some(rest.split([close, ' ']).next()?.to_owned())
    };
    let old = if rest.starts_with('[') { between("[", ']') } else { None };
    let item = Item { name: name.to_owned(), old, new: None, purged: false };
    match verb {
        "Inst" => Some(Item { new: between("(", ')'), ..item }),
        "Remv" => Some(item),
        "Purg" => Some(Item { purged: true, ..item }),
        _ => None,
    }
}

/// The name that an error says nobody knows.
fn missing(error: &str) -> Option<&str> {
    if let Some(name) = error.strip_prefix("Unable to locate package ") {
        return Some(name.trim());
    }
    let rest = error.strip_prefix("Package '")?;
    rest.strip_suffix("' has no installation candidate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_becomes_of_each_package() {
        let output = "\
Reading package lists...
The following held packages will be changed:
  zz-held zz-kept
The following packages will be REMOVED:
  zz-gone
The following packages will be DOWNGRADED:
  zz-held
Remv zz-gone [3] [zz-other:amd64 ]
Inst zz-alpha [1.0] (1:1.2-3 Debian:12/stable [all]) []
Inst libzz:i386 (2.0 Debian:12/stable [i386])
Inst zz-held [2.0] (1.0 localhost [all])
Conf zz-alpha (1:1.2-3 Debian:12/stable [all])
Purg zz-purged [1]
";
        let simulation = parse(output, "");
        let shown: Vec<String> = simulation
            .items
            .iter()
            .map(|item| format!("{} {:?} {:?} {}", item.name, item.old, item.new, item.purged))
            .collect();
        assert_eq!(
            shown,
            [
                "zz-gone Some(\"3\") None false",
                "zz-alpha Some(\"1.0\") Some(\"1:1.2-3\") false",
                "libzz:i386 None Some(\"2.0\") false",
                "zz-held Some(\"2.0\") Some(\"1.0\") false",
                "zz-purged Some(\"1\") None true",
            ]
        );
        assert_eq!(simulation.held, ["zz-held", "zz-kept"]);
        assert_eq!(simulation.downgraded, ["zz-held"]);
        assert!(simulation.items[2].is_new() && !simulation.items[3].is_new());
    }

    #[test]
    fn missing_names_are_told_apart() {
        let simulation = parse("", "E: Unable to locate package zz\nE: Package 'yy' has no installation candidate\n");
        assert_eq!((simulation.missing, simulation.errors.len()), (vec!["zz".to_owned(), "yy".to_owned()], 2));
        assert_eq!(parse("", "E: Version '7' for 'zz' was not found\n").missing, Vec::<String>::new());
    }
}
