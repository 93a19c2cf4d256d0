<?php
/**
 * Hidden check, which the agent never sees: fields of several lines are imported, fields of one
 * line are unchanged, and the regular expression parser reads the same data as the XML parser.
 */

define( 'WP_LOAD_IMPORTERS', true );
foreach ( array( 'regex', 'simplexml' ) as $parser ) {
	require_once WP_PLUGIN_DIR . "/wordpress-importer/parsers/class-wxr-parser-$parser.php";
}

$item = <<<'XML'
<item>
<title><![CDATA[A title]]></title>
<dc:creator><![CDATA[admin]]></dc:creator>
<content:encoded><![CDATA[<p>One</p>

<p>Two ]]]]><![CDATA[> still</p>]]></content:encoded>
<excerpt:encoded><![CDATA[Short
and long]]></excerpt:encoded>
<wp:post_id>7</wp:post_id>
<wp:post_date><![CDATA[2024-01-02 03:04:05]]></wp:post_date>
<wp:post_name><![CDATA[a-title]]></wp:post_name>
<wp:status><![CDATA[publish]]></wp:status>
<wp:post_type><![CDATA[post]]></wp:post_type>
<wp:postmeta>
<wp:meta_key><![CDATA[address]]></wp:meta_key>
<wp:meta_value><![CDATA[Street 1
Town]]></wp:meta_value>
</wp:postmeta>
<wp:postmeta>
<wp:meta_key><![CDATA[plain]]></wp:meta_key>
<wp:meta_value><![CDATA[x]]></wp:meta_value>
</wp:postmeta>
<wp:comment>
<wp:comment_id>3</wp:comment_id>
<wp:comment_author><![CDATA[Ann]]></wp:comment_author>
<wp:comment_content><![CDATA[Line a
Line b]]></wp:comment_content>
<wp:commentmeta>
<wp:meta_key>note</wp:meta_key>
<wp:meta_value><![CDATA[1
2]]></wp:meta_value>
</wp:commentmeta>
</wp:comment>
</item>
XML;
$head = '<?xml version="1.0" encoding="UTF-8" ?>' . "\n" . '<rss version="2.0" xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/" '
	. 'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" '
	. 'xmlns:wp="http://wordpress.org/export/1.2/"><channel>' . "\n<wp:wxr_version>1.2</wp:wxr_version>\n";
$file = tempnam( sys_get_temp_dir(), 'wxr' );
file_put_contents( $file, "$head$item\n</channel></rss>\n" );

$regex = ( new WXR_Parser_Regex() )->parse( $file )['posts'][0];
$xml   = ( new WXR_Parser_SimpleXML() )->parse( $file )['posts'][0];
$seen  = array();
foreach ( array( $regex, $xml ) as $post ) {
	$seen[] = array(
		'title'       => $post['post_title'],
		'content'     => $post['post_content'],
		'excerpt'     => $post['post_excerpt'],
		'name'        => $post['post_name'],
		'date'        => $post['post_date'],
		'meta'        => array_map( 'array_values', $post['postmeta'] ?? array() ),
		'comment'     => $post['comments'][0]['comment_content'] ?? null,
		'commentmeta' => array_map( 'array_values', $post['comments'][0]['commentmeta'] ?? array() ),
	);
}
$wanted = array(
	'title'       => 'A title',
	'content'     => "<p>One</p>\n\n<p>Two ]]> still</p>",
	'excerpt'     => "Short\nand long",
	'name'        => 'a-title',
	'date'        => '2024-01-02 03:04:05',
	'meta'        => array( array( 'address', "Street 1\nTown" ), array( 'plain', 'x' ) ),
	'comment'     => "Line a\nLine b",
	'commentmeta' => array( array( 'note', "1\n2" ) ),
);
foreach ( array( 'regex', 'simplexml' ) as $number => $parser ) {
	foreach ( $wanted as $field => $value ) {
		if ( $value !== $seen[ $number ][ $field ] ) {
			fwrite( STDERR, "$parser: $field is " . var_export( $seen[ $number ][ $field ], true ) . ', expected ' . var_export( $value, true ) . "\n" );
			exit( 1 );
		}
	}
}
echo "hidden: ok\n";
