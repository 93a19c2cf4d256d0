<?php
/**
 * Sandbox replacement of sendmail: reads a mail on standard input and passes it to the mail capture, which
 * listens on port 25 of this guest. No mail leaves the sandbox.
 *
 * Options as in sendmail: -t (recipients are in the headers), -f or -r ADDRESS (sender), -i and -oi (a line
 * with a single dot is text, as it always is for this program); other options are accepted and ignored. Further
 * arguments are recipients. Exit status 0 only when the mail capture accepted the mail, 64 for wrong usage,
 * 75 when the mail could not be delivered.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Sendmail;

/**
 * Exit status for wrong usage (EX_USAGE).
 */
const USAGE = 64;

/**
 * Exit status when the mail could not be delivered (EX_TEMPFAIL).
 */
const TEMPORARY = 75;

/**
 * Time limit for connecting to the mail capture and for each of its replies, in seconds.
 */
const TIMEOUT_S = 10;

/**
 * Prints an error message and ends the program.
 *
 * @param int    $status Exit status.
 * @param string $why    Error message.
 */
function fail( int $status, string $why ): never {
	fwrite( STDERR, "sendmail: $why\n" );
	exit( $status );
}

/**
 * Returns the addresses in a header value: the text in angle brackets, else the words with an @.
 *
 * @param string $value Header value.
 * @return string[]
 */
function addresses( string $value ): array {
	$found = array();
	// Quoted names and comments may contain commas, brackets and at signs.
	$value = (string) preg_replace( '/"(?:[^"\\\\]|\\\\.)*"|\([^()]*\)/s', ' ', $value );
	foreach ( explode( ',', $value ) as $one ) {
		if ( preg_match( '/<([^<>\s]+)>/', $one, $match ) || preg_match( '/([^\s<>;:]+@[^\s<>;:]+)/', $one, $match ) ) {
			$found[] = $match[1];
		}
	}
	return $found;
}

/**
 * Reads an SMTP reply.
 *
 * @param resource $stream SMTP connection.
 * @param string   $wanted First digit that the reply must have.
 */
function expect( $stream, string $wanted ): void {
	do {
		$line = fgets( $stream, 4096 );
		if ( ! is_string( $line ) ) {
			fail( TEMPORARY, 'the mail capture closed the connection' );
		}
	} while ( '-' === ( $line[3] ?? '' ) );
	if ( $line[0] !== $wanted ) {
		fail( TEMPORARY, 'the mail capture refused the mail: ' . rtrim( $line ) );
	}
}

/**
 * Sends an SMTP command and reads its reply.
 *
 * @param resource $stream SMTP connection.
 * @param string   $line   SMTP command.
 * @param string   $wanted First digit that the reply must have.
 */
function ask( $stream, string $line, string $wanted = '2' ): void {
	if ( strlen( $line ) + 2 !== @fwrite( $stream, $line . "\r\n" ) ) {
		fail( TEMPORARY, 'the mail capture closed the connection' );
	}
	expect( $stream, $wanted );
}

$from       = 'agent@localhost';
$recipients = array();
$in_headers = false;
$arguments  = array_slice( $argv, 1 );
$options    = true;
while ( array() !== $arguments ) {
	$argument = (string) array_shift( $arguments );
	if ( $options && '--' === $argument ) {
		$options = false;
	} elseif ( ! $options || ! str_starts_with( $argument, '-' ) ) {
		$recipients[] = $argument;
	} elseif ( '-bs' === $argument ) {
		fail( USAGE, '-bs is not supported; speak SMTP to 127.0.0.1 port 25' );
	} elseif ( preg_match( '/^-[fr](.*)$/s', $argument, $match ) ) {
		$from = trim( '' === $match[1] ? (string) array_shift( $arguments ) : $match[1], '<> ' );
	} elseif ( preg_match( '/^-[FoNRVXO]$/', $argument ) ) {
		array_shift( $arguments );
	} elseif ( preg_match( '/^-[a-z]*t[a-z]*$/', $argument ) && ! str_starts_with( $argument, '-o' ) ) {
		$in_headers = true;
	}
}

$mail = (string) stream_get_contents( STDIN );
$mail = (string) preg_replace( '/\r\n|\r|\n/', "\r\n", $mail );
$mail = rtrim( $mail, "\r\n" ) . "\r\n";
$end  = strpos( $mail, "\r\n\r\n" );
$head = false === $end ? $mail : substr( $mail, 0, $end + 2 );
$body = substr( $mail, strlen( $head ) );

// Each match is one field with its folded lines.
preg_match_all( '/^([^\s:]+)[ \t]*:((?:.*\r\n)(?:[ \t].*\r\n)*)/m', $head, $fields, PREG_SET_ORDER );
foreach ( $fields as $field ) {
	$name = strtolower( $field[1] );
	if ( $in_headers && in_array( $name, array( 'to', 'cc', 'bcc' ), true ) ) {
		$recipients = array_merge( $recipients, addresses( $field[2] ) );
	}
}
if ( $in_headers ) {
	// Anchored at the line start: another field, such as X-Bcc, may end with the same text.
	$head = (string) preg_replace( '/^bcc[ \t]*:.*\r\n(?:[ \t].*\r\n)*/im', '', $head );
}
$recipients = array_values( array_unique( $recipients ) );
if ( array() === $recipients ) {
	fail( USAGE, 'the mail has no recipient' );
}
foreach ( array( $from, ...$recipients ) as $address ) {
	if ( preg_match( '/[\x00-\x20<>\x7f]/', $address ) ) {
		fail( USAGE, 'an address has invalid characters' );
	}
}

$stream = @stream_socket_client( 'tcp://127.0.0.1:25', $errno, $error, TIMEOUT_S );
if ( false === $stream ) {
	fail( TEMPORARY, 'no mail capture listens in this sandbox' );
}
stream_set_timeout( $stream, TIMEOUT_S );
expect( $stream, '2' );
ask( $stream, 'HELO localhost' );
ask( $stream, "MAIL FROM:<$from>" );
foreach ( $recipients as $recipient ) {
	ask( $stream, "RCPT TO:<$recipient>" );
}
ask( $stream, 'DATA', '3' );
$text = $head . $body;
// SMTP dot stuffing: a leading dot is doubled, so the line does not end the mail.
$text = (string) preg_replace( '/^\./m', '..', $text );
for ( $sent = 0, $size = strlen( $text ); $sent < $size; $sent += $written ) {
	$written = @fwrite( $stream, substr( $text, $sent, 65536 ) );
	if ( ! is_int( $written ) || 0 === $written ) {
		fail( TEMPORARY, 'the mail capture closed the connection' );
	}
}
ask( $stream, '.' );
@fwrite( $stream, "QUIT\r\n" );
