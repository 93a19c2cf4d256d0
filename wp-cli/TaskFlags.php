<?php
/**
 * Converts the flags of `run-agent-task` to the input of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Services;

defined( 'ABSPATH' ) || exit;

/**
 * Precedence, lowest first: `--input-file`, `--input-json`, flags. The ability's schema validates the result.
 */
final class TaskFlags {

	/** Flags that are not the input field with that public name and its JSON or text. */
	private const DESCRIBED = [ 'mount', 'runtime-task', 'component', 'provider-plugin-paths', 'agent-bundles', 'agent-success-codes', 'provider', 'model', 'base-url', 'max-turns', 'max-cost', 'budget', 'allowed-tools', 'sandbox-tool-policy', 'tool-bridge', 'parent-tool-bridge', 'inherit', 'check', 'network', 'secret-env', 'timeout', 'memory', 'disk', 'processes', 'cpus', 'output-limit', 'find-renames', 'service', 'orchestrator' ];

	private const LIMITS = [
		'memory'       => 'memory_bytes',
		'disk'         => 'disk_bytes',
		'output-limit' => 'output_bytes',
	];

	/**
	 * Creates the reader with its dependencies.
	 *
	 * @param Services $services Service objects: schemas, and installed plugins and themes.
	 */
	public function __construct( private readonly Services $services ) {}

	/**
	 * Returns the input of one task.
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function input( array $args, array $flags ): array {
		return $this->services->schemas->valid( 'run-agent-task-input', $this->with_current_directory( $this->fields( $args, $flags ) ) );
	}

	/**
	 * Returns the input of several tasks: the list, and the fields that all tasks share.
	 *
	 * @param string               $list   Field of the list; also the name of its flag.
	 * @param array<string, mixed> $flags  Flags of the command line, by name.
	 * @param string               $schema Schema of the complete input.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	public function group( string $list, array $flags, string $schema ): array {
		// `--policy` names how conflicts are handled; as a JSON object it is the runtime policy of each task.
		$conflicts = isset( $flags['policy'] ) && ! str_starts_with( ltrim( (string) $flags['policy'] ), '{' );
		$input     = $this->fields( [], array_diff_key( $flags, array_flip( [ $list, 'concurrency', 'aggregator', 'stop-on-failure', ...( $conflicts ? [ 'policy' ] : [] ) ] ) ) );
		if ( isset( $flags[ $list ] ) ) {
			$value = json_decode( (string) $flags[ $list ], true );
			if ( ! is_array( $value ) || ! array_is_list( $value ) ) {
				/* translators: %s: name of a flag. */
				throw Failure::invalid_input( Sentence::of( __( '--%s must be a JSON list.', 'codebox' ), $list ) );
			}
			$input[ $list ] = $value;
		}
		if ( isset( $flags['concurrency'] ) ) {
			$input['concurrency'] = Quantity::whole( 'concurrency', (string) $flags['concurrency'], 0, PHP_INT_MAX );
		}
		if ( isset( $flags['aggregator'] ) ) {
			$input['aggregator'] = FlagList::json_object( '--aggregator', (string) $flags['aggregator'] );
		}
		if ( $conflicts ) {
			$input['aggregator'] = [ 'policy' => (string) $flags['policy'] ];
		}
		if ( ! empty( $flags['stop-on-failure'] ) ) {
			$input['stop_on_failure'] = true;
		}
		return $this->services->schemas->valid( $schema, $this->with_current_directory( $input ) );
	}

	/**
	 * Returns the fields of a task without validation.
	 *
	 * @param list<string>         $args  Positional arguments.
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_input_invalid`.
	 */
	private function fields( array $args, array $flags ): array {
		$other = JsonInput::others( $flags, $this->services->schemas->get( 'run-agent-task-input' ), self::DESCRIBED );
		$input = array_merge( JsonInput::fields( $flags ), $other, ComponentFlags::fields( $flags ), ModelFlags::fields( $flags ) );
		if ( isset( $args[0] ) ) {
			if ( isset( $flags['goal'] ) ) {
				throw Failure::invalid_input( __( 'The goal is given twice; give it as the argument or with --goal.', 'codebox' ) );
			}
			$input['goal'] = $args[0];
		}
		if ( isset( $flags['mount'] ) ) {
			$input['mounts'] = array_map( [ $this, 'mount' ], FlagList::split( '--mount', (string) $flags['mount'] ) );
		}
		if ( isset( $flags['check'] ) ) {
			$input['checks'] = FlagList::one_or_json( '--check', (string) $flags['check'] );
		}
		if ( isset( $flags['agent-success-codes'] ) ) {
			$input['agent_success_codes'] = array_map( [ $this, 'exit_code' ], FlagList::split( '--agent-success-codes', (string) $flags['agent-success-codes'] ) );
		}
		if ( isset( $flags['service'] ) ) {
			$input['services'] = array_map( static fn( string $kind ): array => [ 'id' => $kind, 'kind' => $kind ], FlagList::split( '--service', (string) $flags['service'] ) );
		}
		if ( isset( $flags['network'] ) ) {
			$input['network'] = $this->network( (string) $flags['network'] );
		}
		if ( isset( $flags['orchestrator'] ) ) {
			$input['orchestrator'] = FlagList::json_object( '--orchestrator', (string) $flags['orchestrator'] );
		}
		if ( ! empty( $flags['find-renames'] ) ) {
			$input['find_renames'] = true;
		}
		$limits = $this->limits( $flags );
		if ( [] !== $limits ) {
			$input['limits'] = array_merge( (array) ( $input['limits'] ?? [] ), $limits );
		}
		return $input;
	}

	/**
	 * Parses one mount `SRC[:DST][:ro|:rw]`. Without DST, the target follows from the plugin or theme at SRC,
	 * else it is `/workspace/<name>`.
	 *
	 * @param string $text Value as the user typed it.
	 * @return array<string, string>
	 */
	private function mount( string $text ): array {
		$parts = explode( ':', $text );
		$mode  = 'readwrite';
		if ( count( $parts ) > 1 && in_array( end( $parts ), [ 'ro', 'rw' ], true ) ) {
			$mode = 'ro' === array_pop( $parts ) ? 'readonly' : 'readwrite';
		}
		if ( count( $parts ) > 2 || '' === $parts[0] ) {
			/* translators: %s: value as given. */
			throw Failure::invalid_input( Sentence::of( __( '--mount=%s is not SRC[:DST][:ro].', 'codebox' ), $text ) );
		}
		$given  = str_starts_with( $parts[0], '/' ) ? $parts[0] : getcwd() . '/' . $parts[0];
		$real   = realpath( $given );
		$source = false === $real ? $given : $real;
		$own    = $this->services->code->mount_of( $source );
		$target = $parts[1] ?? ( null !== $own && $own['source'] === $source ? $own['target'] : '/workspace/' . basename( $source ) );
		return [
			'source' => $source,
			'target' => $target,
			'mode'   => $mode,
		];
	}

	/**
	 * Parses one exit code.
	 *
	 * @param string $text Value as the user typed it.
	 */
	private function exit_code( string $text ): int {
		if ( 1 !== preg_match( '/^[0-9]{1,3}$/D', $text ) ) {
			/* translators: %s: value as given. */
			throw Failure::invalid_input( Sentence::of( __( '--agent-success-codes: "%s" is not an exit code; write e.g. 0,1.', 'codebox' ), $text ) );
		}
		return (int) $text;
	}

	/**
	 * Parses the network policy: one word, or host names.
	 *
	 * @param string $text Value as the user typed it.
	 * @return string|array<string, mixed>
	 */
	private function network( string $text ): string|array {
		if ( in_array( $text, [ 'allow', 'deny' ], true ) ) {
			return $text;
		}
		return str_starts_with( ltrim( $text ), '{' ) ? FlagList::json_object( '--network', $text ) : [ 'allowHosts' => FlagList::split( '--network', $text ) ];
	}

	/**
	 * Returns the limits given as flags.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return array<string, int>
	 */
	private function limits( array $flags ): array {
		$limits = [];
		if ( isset( $flags['timeout'] ) ) {
			$limits['wall_clock_ms'] = Quantity::milliseconds( 'timeout', (string) $flags['timeout'] );
		}
		foreach ( self::LIMITS as $flag => $field ) {
			if ( isset( $flags[ $flag ] ) ) {
				$limits[ $field ] = Quantity::bytes( $flag, (string) $flags[ $flag ] );
			}
		}
		if ( isset( $flags['processes'] ) ) {
			if ( 1 !== preg_match( '/^[0-9]{1,9}$/D', (string) $flags['processes'] ) ) {
				/* translators: %s: value as given. */
				throw Failure::invalid_input( Sentence::of( __( '--processes=%s is not a number.', 'codebox' ), (string) $flags['processes'] ) );
			}
			$limits['processes'] = (int) $flags['processes'];
		}
		if ( isset( $flags['cpus'] ) ) {
			if ( 1 !== preg_match( '/^[0-9]{1,4}(\.[0-9]{1,3})?$/D', (string) $flags['cpus'] ) ) {
				/* translators: %s: value as given. */
				throw Failure::invalid_input( Sentence::of( __( '--cpus=%s is not a number of processors such as 1.5.', 'codebox' ), (string) $flags['cpus'] ) );
			}
			$limits['cpu_milli'] = (int) round( 1000 * (float) $flags['cpus'] );
		}
		return $limits;
	}

	/**
	 * Returns the plugin or theme that contains the current directory; used when no mount is given.
	 *
	 * @param array<string, mixed> $input Input collected so far.
	 * @return array<string, mixed>
	 */
	private function with_current_directory( array $input ): array {
		if ( isset( $input['plugin'] ) || isset( $input['theme'] ) || ! empty( $input['mounts'] ) || ! empty( $input['workspaces'] ) ) {
			return $input;
		}
		$mount = $this->services->code->mount_of( (string) getcwd() );
		if ( null !== $mount ) {
			$input[ $mount['metadata']['kind'] ] = $mount['metadata']['slug'];
		}
		return $input;
	}
}
