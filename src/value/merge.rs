//! Maps put together level by level.

use super::{Map, Value};

/// The entries of both maps; where both have a map at a key, these are put together in the same way, else `above` counts.
pub fn merge_maps(mut below: Map, above: &Map) -> Map {
    for (key, value) in above {
        let merged = match (below.get(key), value) {
            (Some(Value::Map(one)), Value::Map(other)) => Value::map(merge_maps(one.as_ref().clone(), other)),
            _ => value.clone(),
        };
        below.insert(key.clone(), merged);
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn maps_of_several_levels_are_merged() {
        let map = |entries: [(&str, Value); 2]| Value::map(object(entries));
        let below = object([("a", map([("x", 1.into()), ("y", 2.into())])), ("b", 3.into())]);
        let above = object([("a", map([("y", 4.into()), ("z", 5.into())])), ("c", Value::list(vec![6.into()]))]);
        let merged = Value::map(merge_maps(below, &above)).to_repr();
        assert_eq!(merged, "{'a': {'x': 1, 'y': 4, 'z': 5}, 'b': 3, 'c': [6]}");
    }
}
