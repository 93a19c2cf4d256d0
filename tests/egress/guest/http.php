<?php
/**
 * One request by one of PHP's own clients: `php http.php curl|stream URL`.
 * Prints the status, a blank and the first line of the body.
 */

declare(strict_types=1);

list( , $client, $url ) = $argv;
if ( 'curl' === $client ) {
	$handle = curl_init( $url );
	curl_setopt_array(
		$handle,
		array(
			CURLOPT_RETURNTRANSFER => true,
			CURLOPT_TIMEOUT        => 20,
		)
	);
	$body   = curl_exec( $handle );
	$status = curl_getinfo( $handle, CURLINFO_RESPONSE_CODE );
	$status = $status ? $status : curl_getinfo( $handle, CURLINFO_HTTP_CONNECTCODE );
} else {
	// Names no proxy, because the test checks the proxy of this process's default context.
	stream_context_set_option( stream_context_get_default(), 'http', 'ignore_errors', true );
	$body   = @file_get_contents( $url );
	$status = preg_match( '#^HTTP/\S+ (\d+)#', $http_response_header[0] ?? (string) ( error_get_last()['message'] ?? '' ), $m ) ? $m[1] : 0;
	if ( ! $status && preg_match( '#HTTP/1\.1 (\d+)#', (string) ( error_get_last()['message'] ?? '' ), $m ) ) {
		$status = $m[1];
	}
}
echo $status, ' ', strtok( (string) $body, "\n" ), "\n";
