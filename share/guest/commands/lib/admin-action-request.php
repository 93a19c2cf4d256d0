<?php
/**
 * Reads the arguments of `wordpress.admin-action`.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/** Families of actions, as the result lists them. */
const ADMIN_ACTION_FAMILIES = array(
	array(
		'family' => 'admin-hook',
		'status' => 'supported',
	),
	array(
		'family' => 'ajax',
		'status' => 'supported',
	),
	array(
		'family' => 'admin-post',
		'status' => 'supported',
	),
	array(
		'family' => 'editor',
		'status' => 'unsupported',
		'reason' => 'Use wordpress.editor-actions for real browser-backed editor mutations.',
	),
	array(
		'family' => 'browser-random-walk',
		'status' => 'unsupported',
		'reason' => 'The public planning contract exists in browser-interaction; runtime execution is not implemented.',
	),
);

/**
 * One action of wp-admin: {family, action, method?, params?, query?, args?, user?, role?, session?, nonce?, nonceField?}.
 *
 * `kind` is another name of `family`, `post` another word for `admin-post`; `hook` is another name of `action`, and
 * `data` and `body` of `params`.
 */
final class Admin_Action_Request {
	/** Words for a family, besides its own. */
	private const FAMILIES = array(
		'post'       => 'admin-post',
		'admin-ajax' => 'ajax',
		'hook'       => 'admin-hook',
	);

	/** Members of an action. */
	private const MEMBERS = array( 'schema', 'family', 'kind', 'type', 'action', 'hook', 'name', 'method', 'params', 'data', 'body', 'query', 'args', 'user', 'role', 'session', 'nonce', 'nonceAction', 'nonceField', 'metadata' );

	/**
	 * Creates the request.
	 *
	 * @param string                  $family      Family of the action.
	 * @param string                  $name        Name of the action, or of the hook.
	 * @param string                  $method      HTTP method: GET or POST.
	 * @param array<string,mixed>     $params      Parameters of the action.
	 * @param array<string,mixed>     $query       Parameters of the query, besides those of the action.
	 * @param list<mixed>             $arguments   Arguments of a hook.
	 * @param string                  $user        Login, e-mail address or id of the acting user; '' for none.
	 * @param string                  $role        Role of the acting user; '' for none.
	 * @param string                  $session     Name of the session; '' for none.
	 * @param string                  $nonce       Action of the nonce to send; '' for none.
	 * @param string                  $nonce_field Name of the field with the nonce.
	 * @param array<string,mixed>     $boundary    Isolation of a destructive action, as the caller describes it.
	 */
	private function __construct( public readonly string $family, public readonly string $name, public readonly string $method, public readonly array $params, public readonly array $query, public readonly array $arguments, public readonly string $user, public readonly string $role, public readonly string $session, public readonly string $nonce, public readonly string $nonce_field, public readonly array $boundary ) {}

	/**
	 * Reads the arguments of the command.
	 *
	 * @param Arguments $arguments Arguments action-json, destructive-boundary-json.
	 */
	public static function read( Arguments $arguments ): self {
		$given    = $arguments->record( 'action-json', self::MEMBERS );
		$boundary = $arguments->object( 'destructive-boundary-json' );
		$family   = self::text( $given, 'family', 'kind', 'type' );
		$family   = '' === $family ? 'admin-post' : self::FAMILIES[ $family ] ?? $family;
		$families = array_column( ADMIN_ACTION_FAMILIES, 'family' );
		if ( ! in_array( $family, $families, true ) ) {
			throw Refusal::input( sprintf( 'the family of action-json is %s, but must be one of %s', Arguments::shown( $family ), implode( ', ', $families ) ) );
		}
		$supported = in_array( $family, array( 'admin-hook', 'ajax', 'admin-post' ), true );
		$name      = self::text( $given, 'action', 'hook', 'name' );
		$method    = self::text( $given, 'method' );
		$method    = '' === $method ? 'POST' : strtoupper( $method );
		if ( $supported && ( 1 !== preg_match( '~^[A-Za-z0-9_./:{}-]{1,200}$~D', $name ) || ! in_array( $method, array( 'GET', 'POST' ), true ) ) ) {
			throw Refusal::input( 'action-json must be {family: admin-hook|ajax|admin-post, action: NAME, method: GET|POST, params: {…}}' );
		}
		$kind = (string) ( is_scalar( $boundary['kind'] ?? 'sandbox' ) ? $boundary['kind'] ?? 'sandbox' : '' );
		if ( ( 'none' === $kind || false === ( $boundary['disposable'] ?? true ) ) && 'GET' !== $method ) {
			throw new Refusal( 'destructive-boundary', 'the action may change the site, but destructive-boundary-json says that nothing isolates it: leave it out' );
		}
		$list = $given['args'] ?? array();
		if ( ! is_array( $list ) ) {
			throw Refusal::input( 'args of action-json must be a list of arguments, or an object of parameters' );
		}
		return new self(
			$family,
			$name,
			$method,
			self::fields( $given, 'params', 'data', 'body' ) + ( array_is_list( $list ) ? array() : $list ),
			self::fields( $given, 'query' ),
			array_is_list( $list ) ? $list : array( $list ),
			self::text( $given, 'user' ),
			self::text( $given, 'role' ),
			self::text( $given, 'session' ),
			self::text( $given, 'nonce', 'nonceAction' ),
			self::text( $given, 'nonceField' ) ?: '_wpnonce',
			$boundary
		);
	}

	/**
	 * Returns the first of the named members that is not empty, as a text; else ''.
	 *
	 * @param array<string,mixed> $given    Action as given.
	 * @param string              ...$names Names of the member.
	 */
	private static function text( array $given, string ...$names ): string {
		foreach ( $names as $name ) {
			$value = $given[ $name ] ?? null;
			if ( null !== $value && ! is_string( $value ) && ! is_int( $value ) ) {
				throw Refusal::input( "$name of action-json must be a text" );
			}
			if ( null !== $value && '' !== $value ) {
				return (string) $value;
			}
		}
		return '';
	}

	/**
	 * Merges the fields of the named members of the action.
	 *
	 * @param array<string,mixed> $given    Action as given.
	 * @param string              ...$names Names of the members.
	 * @return array<string,mixed>
	 */
	private static function fields( array $given, string ...$names ): array {
		$fields = array();
		foreach ( $names as $name ) {
			$value = $given[ $name ] ?? array();
			if ( ! is_array( $value ) || array() !== $value && array_is_list( $value ) ) {
				throw Refusal::input( "$name of action-json must be an object" );
			}
			$fields += $value;
		}
		return $fields;
	}

	/**
	 * Returns the action as the result reports it: the names of its parameters, without their values.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		return array(
			'family' => $this->family,
			'kind'   => array( 'admin-post' => 'post' )[ $this->family ] ?? $this->family,
			'name'   => $this->name,
			'action' => $this->name,
			'method' => $this->method,
			'params' => array_keys( $this->params ),
			'nonce'  => '' !== $this->nonce,
		);
	}
}
