<?php
/**
 * The sendmail of a sandbox: takes a mail on its standard input and gives it to the mail capture,
 * which listens on this guest's port 25. Nothing is sent anywhere else.
 *
 * Options as sendmail has them: -t (recipients are in the headers), -f or -r ADDRESS (sender), -i
 * and -oi (a dot alone is text, which it always is here); others are taken and mean nothing.
 * Arguments that are no options are recipients. Exit status 0 only when the capture took the
 * mail, 64 for wrong use, 75 when it could not be handed over.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Sendmail;

/**
 * Wrong use.
 */
const USAGE = 64;

/**
 * The mail could not be handed over (EX_TEMPFAIL).
 */
const TEMPORARY = 75;

/**
 * Longest wait for the capture, seconds.
 */
const PATIENCE = 10;

/**
 * Ends with a message.
 *
 * @param int    $status Exit status.
 * @param string $why    What went wrong.
 */
function fail( int $status, string $why ): never {
	fwrite( STDERR, "sendmail: $why\n" );
	exit( $status );
}

/**
 * The addresses in a header's value: what stands in angle brackets, else the words with an @.
 *
 * @param string $value Value.
 * @return string[]
 */
function addresses( string $value ): array {
	$found = array();
	// A quoted name or a comment may have commas, brackets and at signs of its own.
	$value = (string) preg_replace( '/"(?:[^"\\\\]|\\\\.)*"|\([^()]*\)/s', ' ', $value );
	foreach ( explode( ',', $value ) as $one ) {
		if ( preg_match( '/<([^<>\s]+)>/', $one, $match ) || preg_match( '/([^\s<>;:]+@[^\s<>;:]+)/', $one, $match ) ) {
			$found[] = $match[1];
		}
	}
	return $found;
}

/**
 * Reads a reply.
 *
 * @param resource $stream Connection.
 * @param string   $wanted First digit it must have.
 */
function expect( $stream, string $wanted ): void {
	do {
		$line = fgets( $stream, 4096 );
		if ( ! is_string( $line ) ) {
			fail( TEMPORARY, 'the mail capture ended the conversation' );
		}
	} while ( '-' === ( $line[3] ?? '' ) );
	if ( $line[0] !== $wanted ) {
		fail( TEMPORARY, 'the mail capture refused the mail: ' . rtrim( $line ) );
	}
}

/**
 * Sends a command and reads its reply.
 *
 * @param resource $stream Connection.
 * @param string   $line   Command.
 * @param string   $wanted First digit of the reply.
 */
function ask( $stream, string $line, string $wanted = '2' ): void {
	if ( strlen( $line ) + 2 !== @fwrite( $stream, $line . "\r\n" ) ) {
		fail( TEMPORARY, 'the mail capture ended the conversation' );
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

// One field each, with the lines it is folded into.
preg_match_all( '/^([^\s:]+)[ \t]*:((?:.*\r\n)(?:[ \t].*\r\n)*)/m', $head, $fields, PREG_SET_ORDER );
foreach ( $fields as $field ) {
	$name = strtolower( $field[1] );
	if ( $in_headers && in_array( $name, array( 'to', 'cc', 'bcc' ), true ) ) {
		$recipients = array_merge( $recipients, addresses( $field[2] ) );
	}
}
if ( $in_headers ) {
	// By its place: the same text may end another field, such as X-Bcc.
	$head = (string) preg_replace( '/^bcc[ \t]*:.*\r\n(?:[ \t].*\r\n)*/im', '', $head );
}
$recipients = array_values( array_unique( $recipients ) );
if ( array() === $recipients ) {
	fail( USAGE, 'the mail has no recipient' );
}
foreach ( array( $from, ...$recipients ) as $address ) {
	if ( preg_match( '/[\x00-\x20<>\x7f]/', $address ) ) {
		fail( USAGE, 'an address has characters that no address has' );
	}
}

$stream = @stream_socket_client( 'tcp://127.0.0.1:25', $errno, $error, PATIENCE );
if ( false === $stream ) {
	fail( TEMPORARY, 'no mail capture listens in this sandbox' );
}
stream_set_timeout( $stream, PATIENCE );
expect( $stream, '2' );
ask( $stream, 'HELO localhost' );
ask( $stream, "MAIL FROM:<$from>" );
foreach ( $recipients as $recipient ) {
	ask( $stream, "RCPT TO:<$recipient>" );
}
ask( $stream, 'DATA', '3' );
$text = $head . $body;
// A line that begins with a dot gets another one, so that it does not end the mail.
$text = (string) preg_replace( '/^\./m', '..', $text );
for ( $sent = 0, $size = strlen( $text ); $sent < $size; $sent += $written ) {
	$written = @fwrite( $stream, substr( $text, $sent, 65536 ) );
	if ( ! is_int( $written ) || 0 === $written ) {
		fail( TEMPORARY, 'the mail capture ended the conversation' );
	}
}
ask( $stream, '.' );
@fwrite( $stream, "QUIT\r\n" );
