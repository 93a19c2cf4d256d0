<?php
/**
 * Creates the users, sessions and browser actors of a recipe.
 *
 * Request: {file} names a guest file {users: [{name, username, role, userId, email, displayName, password}]}, or
 * {sessions: [{name, user}], actors: [{name, userSession}]}. A user of a session is the name of a fixture user, or
 * the login, email address or id of an existing one. Prints {users: [{name, id, login, roles}]} or {sessions:
 * [{name, user}], actors}; exit status 1 when one could not be created. No password and no cookie is printed.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest;

use WPCodebox\Guest\Command\Fixtures;
use WPCodebox\Guest\Command\Sessions;
use WPCodebox\Guest\Command\Users;

defined( 'ABSPATH' ) || exit;

require __DIR__ . '/exit-guard.php';
require __DIR__ . '/make-user.php';
require __DIR__ . '/commands/lib/entry.php';
require __DIR__ . '/commands/lib/users.php';

/**
 * Creates the users and stores their names.
 *
 * @param list<array<string, mixed>> $rows Rows of `inputs.fixtureUsers`.
 * @return list<array<string, mixed>> Created users.
 * @throws \RuntimeException When a user cannot be created.
 */
function fixture_users( array $rows ): array {
	$names = array();
	$made  = array();
	foreach ( $rows as $row ) {
		$login  = $row['username'] ?? $row['name'];
		$fields = array(
			'user_login'   => $login,
			'user_email'   => $row['email'] ?? "{$row['name']}@example.org",
			'display_name' => $row['displayName'] ?? $login,
			'role'         => $row['role'] ?? 'subscriber',
			'user_pass'    => $row['password'] ?? '',
		);
		$id     = make_user( $fields, $row['userId'] ?? null );
		if ( is_wp_error( $id ) ) {
			throw new \RuntimeException( "the fixture user {$row['name']} cannot be created: " . wp_strip_all_tags( $id->get_error_message() ) );
		}
		$names[ $row['name'] ] = $id;
		$made[]                = array( 'name' => $row['name'] ) + Users::row( Users::get( (string) $login ) );
	}
	Fixtures::keep( 'users', $names );
	return $made;
}

/**
 * Logs the users of sessions in.
 *
 * @param list<array<string, mixed>> $rows Rows of `inputs.userSessions`.
 * @return list<array<string, mixed>> Created sessions.
 * @throws \RuntimeException When a session cannot be created.
 */
function user_sessions( array $rows ): array {
	$made = array();
	foreach ( $rows as $row ) {
		$user = Users::find( $row['user'] );
		if ( null === $user ) {
			throw new \RuntimeException( "the user {$row['user']} of the session {$row['name']} does not exist; add a fixture user of this name" );
		}
		$session = Sessions::make( $row['name'], $user, array( home_url() ) );
		$made[]  = array(
			'name' => $session['session'],
			'user' => $session['user'],
		);
	}
	return $made;
}

wp_set_current_user( 1 );
$codebox_doing = 'users and sessions of the recipe were created';
try {
	if ( isset( $codebox_question['file'] ) ) {
		$codebox_people = json_decode( (string) file_get_contents( Command\root() . $codebox_question['file'] ), true );
		$codebox_answer = array( 'users' => fixture_users( $codebox_people['users'] ?? array() ) );
	} else {
		Fixtures::keep( 'actors', array_column( $codebox_question['actors'], 'userSession', 'name' ) );
		$codebox_answer = array(
			'sessions' => user_sessions( $codebox_question['sessions'] ),
			'actors'   => $codebox_question['actors'],
		);
	}
} catch ( \RuntimeException $codebox_thrown ) {
	$codebox_doing = '';
	fwrite( STDERR, $codebox_thrown->getMessage() . "\n" );
	exit( 1 );
}
$codebox_doing = '';
echo wp_json_encode( $codebox_answer ), "\n";
