<?php
/**
 * One request through WordPress: `run-php.php wordpress.php get|safe|download|post URL [HEADER-VALUE]`.
 * Prints the status, a blank and the first line of the body.
 */

list( , $client, $url ) = $argv;
$args = array(
	'timeout' => 20,
	'headers' => isset( $argv[3] ) ? array( 'Authorization' => 'Bearer ' . $argv[3] ) : array(),
);
if ( 'download' === $client ) {
	require_once ABSPATH . 'wp-admin/includes/file.php';
	$file = download_url( $url );
	echo is_wp_error( $file ) ? '0 ' . $file->get_error_message() : '200 ' . strtok( (string) file_get_contents( $file ), "\n" ), "\n";
	return;
}
$calls  = array(
	'get'  => 'wp_remote_get',
	'safe' => 'wp_safe_remote_get',
	'post' => 'wp_remote_post',
);
$answer = $calls[ $client ]( $url, $args );
if ( is_wp_error( $answer ) ) {
	echo '0 ', $answer->get_error_message(), "\n";
	return;
}
echo wp_remote_retrieve_response_code( $answer ), ' ', strtok( wp_remote_retrieve_body( $answer ), "\n" ), "\n";
