<?php
/**
 * A post with more than one line of content keeps it, whichever parser reads it.
 */

define( 'WP_LOAD_IMPORTERS', true );
require_once WP_PLUGIN_DIR . '/wordpress-importer/parsers/class-wxr-parser-regex.php';

$file = tempnam( sys_get_temp_dir(), 'wxr' );
file_put_contents(
	$file,
	"<wp:wxr_version>1.2</wp:wxr_version>\n<item>\n<title>Two lines</title>\n"
	. "<content:encoded><![CDATA[First line.\nSecond line.]]></content:encoded>\n</item>\n"
);
$found = ( new WXR_Parser_Regex() )->parse( $file );
$text  = is_wp_error( $found ) ? $found->get_error_message() : $found['posts'][0]['post_content'];
if ( "First line.\nSecond line." !== $text ) {
	fwrite( STDERR, 'content is ' . var_export( $text, true ) . ", expected two lines\n" );
	exit( 1 );
}
echo "content: ok\n";
