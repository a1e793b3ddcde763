//! Lists with faults in them.

use super::*;

#[tokio::test]
async fn lists_are_followed_to_their_end_and_never_in_circles() {
    for (kind, expected, warning) in [
        ("three-pages", vec!["t1", "t2", "t3", "t4"], None),
        ("same-cursor", vec!["t1"], Some("tools_cursor_repeated")),
        ("two-step-loop", vec!["t1", "t2", "t3"], Some("tools_cursor_repeated")),
        ("empty-string", vec!["t1"], Some("tools_cursor_repeated")),
        ("second-fails", vec!["t1"], Some("tools_page_failed")),
    ] {
        let link = ready(&["pages", kind]).await;
        assert_eq!(names(&link), expected, "{kind}");
        assert!(warning.is_none_or(|code| warned(&link, code)), "{kind}: {:?}", link.catalog().warnings);
    }
    let link = ready(&["pages", "endless"]).await;
    assert_eq!(names(&link).len(), 1_000);
    assert!(warned(&link, "tools_too_many_pages"));
    let limits = Limits { entries: 25, ..Limits::default() };
    let link = open_with(config(&["pages", "endless"]), limits);
    settled(&link).await;
    assert_eq!(names(&link).len(), 25);
    assert!(warned(&link, "tools_too_many"));
}

#[tokio::test]
async fn a_bad_tool_takes_no_other_with_it() {
    let link = ready(&["bad-tools"]).await;
    let catalog = link.catalog();
    assert_eq!(
        names(&link),
        [
            "good",
            "no_schema",
            "null_schema",
            "bool_schema",
            "list_schema",
            "top_anyof",
            "text_hint",
            "bad_output",
            "remote_ref",
            "odd_texts"
        ]
    );
    let skipped: Vec<&str> = catalog.skipped.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(skipped, ["42", "", "text_schema", "not a tool", "null"]);
    let tool = |name: &str| catalog.tools.iter().find(|tool| tool.name == name).unwrap();
    assert_eq!(tool("null_schema").input_schema, json!({"type": "object", "properties": {}}));
    assert_eq!(tool("top_anyof").input_schema["type"], "object");
    assert_eq!(tool("text_hint").annotations.read_only, None);
    assert_eq!(tool("bad_output").output_schema, None);
    assert_eq!((&tool("good").description, &tool("odd_texts").description), (&None, &None));
    for code in ["tool_twice", "tool_output_unusable", "tool_schema_unusable", "tool_schema_type"] {
        assert!(warned(&link, code), "{code}");
    }
}

#[tokio::test]
async fn a_burst_of_changes_is_one_refresh() {
    let link = ready(&["list-changed"]).await;
    let mut watch = link.watch();
    watch.borrow_and_update();
    call(&link, "grow", json!({})).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), watch.changed()).await.expect("announced").unwrap();
    assert!(names(&link).contains(&"grown0".to_owned()));
    assert_eq!(said(&link, "grown0").await, "grown0");
    assert_eq!(said(&link, "lists").await, "2");
}

#[tokio::test]
async fn changes_announced_without_end_do_not_keep_us_busy() {
    let limits = Limits { debounce: Duration::from_millis(20), ..Limits::default() };
    let link = open_with(config(&["list-changed-storm"]), limits);
    settled(&link).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let lists: u32 = said(&link, "lists").await.parse().unwrap();
    assert!((2..=9).contains(&lists), "{lists}");
}
