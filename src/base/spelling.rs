//! "Did you mean": the names that are spelled most like a wrong one.

/// Most names that are suggested.
const MOST: usize = 3;
/// Characters of a name that are looked at: the cost is their product.
const LONGEST: usize = 64;

/// "did you mean ...?" with the names nearest to `wrong`; all of them where none is near.
pub fn suggest(wrong: &str, names: &[String]) -> String {
    did_you_mean(wrong, names.iter().map(String::as_str)).unwrap_or_else(|| format!("use one of {}", names.join(", ")))
}

/// "did you mean ...?" with the names nearest to `wrong`, if one is near.
pub fn did_you_mean<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let wrong: String = wrong.to_lowercase().chars().take(LONGEST).collect();
    let distance = |name: &str| strsim::osa_distance(&wrong, &name.chars().take(LONGEST).collect::<String>());
    let is_near = |(distance, name): &(usize, &str)| {
        let is_part = wrong.len() >= 3 && (name.contains(&wrong) || wrong.contains(*name));
        is_part || *distance <= 1 + name.len() / 4
    };
    let mut near: Vec<_> = names.map(|name| (distance(name), name)).filter(is_near).collect();
    near.sort();
    near.dedup();
    let near: Vec<String> = near.iter().take(MOST).map(|(_, name)| format!("`{name}`")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn suggest_names_the_nearest_first() {
        let names = ["duration", "start", "blocked.disk", "blocked.network"].map(str::to_owned);
        assert_eq!(suggest("durtaion", &names), "did you mean `duration`?");
        assert_eq!(suggest("disk", &names), "did you mean `blocked.disk`?");
        assert_eq!(suggest("blocked", &names), "did you mean `blocked.disk` or `blocked.network`?");
        assert_eq!(suggest("xyz", &names), "use one of duration, start, blocked.disk, blocked.network");
    }
}
