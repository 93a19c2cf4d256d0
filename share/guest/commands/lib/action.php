<?php
/**
 * Actions of a command that may change the site: permission checks, execution and a record of the writes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/users.php';

/** Size limit of an action's reported output, in bytes. */
const ACTION_OUTPUT_BYTES = 65536;

/**
 * Counts statements that write to the database.
 */
final class Writes {
	/**
	 * Number of write statements by SQL verb.
	 *
	 * @var array<string,int>
	 */
	public array $verbs = array();

	/**
	 * Tables that were written to.
	 *
	 * @var array<string,true>
	 */
	private array $tables = array();

	/**
	 * Records a statement if it writes. Callback of wpdb's filter `query`.
	 *
	 * @param mixed $query SQL statement.
	 */
	public function see( mixed $query ): mixed {
		if ( is_string( $query ) && 1 === preg_match( '/^\s*(INSERT|REPLACE|UPDATE|DELETE|CREATE|ALTER|DROP|TRUNCATE|RENAME)\b(?:\s+(?:IGNORE|INTO|FROM|TABLE|TEMPORARY|IF|NOT|EXISTS))*\s+[`"]?([A-Za-z0-9_]*)/i', $query, $found ) ) {
			$verb                 = strtoupper( $found[1] );
			$this->verbs[ $verb ] = ( $this->verbs[ $verb ] ?? 0 ) + 1;
			if ( count( $this->tables ) < 50 && '' !== $found[2] ) {
				$this->tables[ $found[2] ] = true;
			}
		}
		return $query;
	}

	/**
	 * Returns the numbers of write statements and the written tables, as results report them.
	 *
	 * @return array{statements: int, verbs: object, tables: list<string>}
	 */
	public function row(): array {
		return array(
			'statements' => array_sum( $this->verbs ),
			'verbs'      => (object) $this->verbs,
			'tables'     => array_keys( $this->tables ),
		);
	}
}

/**
 * Checks an action before it runs. The acting user must have the capability. For an action that may change data,
 * the caller must not say `none` as its boundary; every other name stands for this sandbox.
 *
 * @param Arguments $arguments Arguments mutates, capability, destructive-boundary.
 * @return array{mutates: bool, capability: array<string,mixed>, destructiveBoundary: array<string,mixed>}
 */
function action_terms( Arguments $arguments ): array {
	$user     = Users::act( $arguments, Users::administrator() );
	$mutates  = $arguments->truth( 'mutates', true );
	$boundary = cut( $arguments->first( 'destructive-boundary' ), 200 );
	$boundary = '' === $boundary ? 'sandbox' : $boundary;
	$wanted   = $arguments->first( 'capability' );
	if ( $mutates && 'none' === $boundary ) {
		throw new Refusal( 'destructive-boundary', 'the action may change the site, but destructive-boundary is none: set mutates=0, or leave destructive-boundary out' );
	}
	$granted = '' === $wanted || current_user_can( $wanted );
	if ( ! $granted ) {
		throw new Refusal( 'capability', sprintf( '%s does not have the capability %s', null === $user ? 'a visitor' : $user->user_login, Arguments::shown( $wanted ) ) );
	}
	return array(
		'mutates'             => $mutates,
		'capability'          => array(
			'required' => '' === $wanted ? null : $wanted,
			'granted'  => $granted,
			'user'     => Users::row( $user ),
		),
		'destructiveBoundary' => array(
			'kind'      => $boundary,
			'satisfied' => true,
		),
	);
}

/**
 * Builds the result document of an action. Fails when the action wrote to the database although the caller
 * declared it read-only.
 *
 * @param array<string,mixed> $action Action that ran: {kind, name, …}.
 * @param array<string,mixed> $terms  Result of action_terms().
 * @param array<string,mixed> $writes Result of Writes::row().
 * @param array<string,mixed> $more   Further fields of the document.
 * @return array<string,mixed> `wp-codebox/wordpress-execution-action-result/v1`.
 */
function action_document( array $action, array $terms, array $writes, array $more ): array {
	$mutation = array(
		'declared' => $terms['mutates'],
		'observed' => $writes['statements'] > 0,
		'writes'   => $writes,
	);
	$result   = $more['result'] ?? null;
	$document = result( 'wordpress-execution-action-result' ) + array(
		'action'              => $action,
		'target'              => $action,
		'safety'              => array(
			'mutates'             => $terms['mutates'],
			'capability'          => $terms['capability'],
			'destructiveBoundary' => $terms['destructiveBoundary']['kind'],
			'mutation'            => $mutation,
		),
		// Always an object: any other value becomes {value: …}.
		'result'              => is_array( $result ) && ( array() === $result || ! array_is_list( $result ) ) ? (object) $result : (object) array( 'value' => $result ),
		'diagnostics'         => array(),
		'mutation'            => $mutation,
		'capability'          => $terms['capability'],
		'destructiveBoundary' => $terms['destructiveBoundary'],
	) + $more;
	if ( ! $terms['mutates'] && $writes['statements'] > 0 ) {
		throw new Refusal( 'mutated', 'the action was declared not to change the site (mutates=0), but it wrote to the database', $document );
	}
	return $document;
}

/**
 * Runs an action in this process, with its checks, and returns its result document.
 *
 * @param Arguments           $arguments Arguments of the guest command.
 * @param array<string,mixed> $action    Action to run.
 * @param callable(): mixed   $work      Performs the action; its return value is the result.
 * @return array<string,mixed>
 */
function act( Arguments $arguments, array $action, callable $work ): array {
	try {
		$terms = action_terms( $arguments );
	} catch ( Refusal $refusal ) {
		throw new Refusal( $refusal->reason, $refusal->getMessage(), refused_action( $action, $arguments ) );
	}
	$writes = new Writes();
	add_filter( 'query', array( $writes, 'see' ), PHP_INT_MAX );
	// An action that calls wp_die() fails; no page is printed.
	foreach ( array( 'wp_die_handler', 'wp_die_ajax_handler', 'wp_die_json_handler' ) as $filter ) {
		add_filter( $filter, static fn (): callable => __NAMESPACE__ . '\\died', PHP_INT_MAX );
	}
	captured_output( 0 );
	$start   = hrtime( true );
	$refusal = null;
	$result  = null;
	try {
		$result = $work();
	} catch ( Refusal $thrown ) {
		$refusal = $thrown;
	} catch ( \Throwable $thrown ) {
		$refusal = new Refusal( 'threw', get_class( $thrown ) . ': ' . cut( $thrown->getMessage(), 500 ) . ' in ' . basename( $thrown->getFile() ) . ':' . $thrown->getLine() );
	}
	$took = ( hrtime( true ) - $start ) / 1e6;
	remove_filter( 'query', array( $writes, 'see' ), PHP_INT_MAX );
	$more = array(
		'result'     => plain( $result ),
		'output'     => captured_output( ACTION_OUTPUT_BYTES ),
		'durationMs' => round( $took, 3 ),
	);
	if ( null !== $refusal ) {
		$terms['mutates'] = true;
		throw new Refusal( $refusal->reason, $refusal->getMessage(), action_document( $action, $terms, $writes->row(), $more ) );
	}
	return action_document( $action, $terms, $writes->row(), $more );
}

/**
 * Builds the result document of an action that was refused before it ran.
 *
 * @param array<string,mixed> $action    Refused action.
 * @param Arguments           $arguments Arguments mutates, capability, destructive-boundary.
 * @return array<string,mixed> `wp-codebox/wordpress-execution-action-result/v1`.
 */
function refused_action( array $action, Arguments $arguments ): array {
	return result( 'wordpress-execution-action-result' ) + array(
		'action'      => $action,
		'target'      => $action,
		'safety'      => array(
			'mutates'             => $arguments->truth( 'mutates', true ),
			'capability'          => array( 'required' => $arguments->first( 'capability' ) ),
			'destructiveBoundary' => cut( $arguments->first( 'destructive-boundary' ), 200 ),
		),
		'result'      => (object) array(),
		'diagnostics' => array(),
	);
}

/**
 * Replaces WordPress's handler of wp_die(): throws, so that the action fails.
 *
 * @param mixed $message Message passed to wp_die().
 */
function died( mixed $message = '' ): never {
	$text = is_wp_error( $message ) ? $message->get_error_message() : ( is_scalar( $message ) ? (string) $message : '' );
	throw new Refusal( 'died', 'WordPress refused: ' . cut( trim( wp_strip_all_tags( $text ) ), 500 ) );
}
