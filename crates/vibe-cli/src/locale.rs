//! What the terminal can show, as the environment says.

use std::ffi::OsStr;

/// The variables that say which characters there are, the one that counts first.
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Whether text is UTF-8 in a locale with these variables; an empty one counts as absent.
pub(crate) fn is_utf8<'a>(variable: impl Fn(&str) -> Option<&'a OsStr>) -> bool {
    let mut values = VARIABLES.iter().filter_map(|name| variable(name));
    let value = values.find(|value| !value.is_empty());
    // A Windows console takes any character, and knows none of these variables.
    value.map_or(cfg!(windows), |value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_says_whether_text_is_utf8() {
        let check = |variables: &[(&str, &'static str)], expected: bool| {
            let found = is_utf8(|name| {
                let mut variables = variables.iter();
                variables
                    .find(|(known, _)| *known == name)
                    .map(|(_, v)| OsStr::new(*v))
            });
            assert_eq!(found, expected, "{variables:?}");
        };
        check(&[], cfg!(windows));
        check(&[("LANG", "en_GB.UTF-8")], true);
        check(&[("LANG", "C.utf8")], true);
        check(&[("LANG", "C")], false);
        check(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")], false);
        check(
            &[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")],
            true,
        );
    }
}
