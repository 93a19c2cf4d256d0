<?php
/**
 * Requests to a model provider through an adapter of the site: the older way.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WP_Error;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Model\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * Adapters get a redacted request and no credential; they have their own. Every failure is a
 * `WP_Error`, and without an adapter there is no answer.
 */
final class ProviderRequests {

	public const EVENT = 'provider-request';

	private const MOST_BYTES = 1048576;

	/**
	 * Wires the requests.
	 *
	 * @param ExtensionGate   $gate    Extension check.
	 * @param TrustedCallers  $callers Who asks.
	 * @param ConnectorSource $source  Connectors.
	 * @param LentValues      $lent    Values the built-in adapter may use while a request lasts.
	 * @param AuditTrail      $audit   Audit log.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly TrustedCallers $callers,
		private readonly ConnectorSource $source,
		private readonly LentValues $lent,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Carries one request out.
	 *
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array<string, mixed> `wp-codebox/browser-provider-adapter-response/v1`.
	 * @throws Failure For whatever goes wrong.
	 */
	public function execute( array $input ): array {
		$this->gate->check();
		$asked    = $this->asked( $input );
		$decision = $this->callers->admitted( Scope::RequestConnector, $input['authorization'] ?? null );
		$request  = (array) Redaction::clean( Redaction::plain( (object) ( $input['request'] ?? [] ), ErrorCode::BrowserProviderRequestRequired, __( 'The request', 'codebox' ), self::MOST_BYTES ) );
		$record   = $asked + [ 'authorization' => $decision->to_array() ];
		try {
			$connector = $this->source->resolve( $asked['connector'], (array) ( $input['inherit'] ?? [] ) + $asked + [ 'scope' => Scope::RequestConnector->value ], $input );
			$record    = ConnectorSource::summary( $connector ) + $record;
			$asked     = $this->source->bound( $connector, $asked );
			$this->source->usable( $connector );
			$this->audit->write( self::EVENT, [ 'status' => 'started' ] + $asked + $record );
			$answer = $this->ask( $this->envelope( $asked, $input, $request, $connector, $decision ), $input, $connector );
		} catch ( Failure $failure ) {
			throw ErrorCode::AuditFailed->value === $failure->error_code ? $failure : $this->audit->failure( self::EVENT, $asked + $record, $failure );
		}
		$this->audit->write( self::EVENT, [ 'status' => 'success' ] + $asked + $record );
		return $this->answer( $asked, $request, $connector, $answer );
	}

	/**
	 * What is asked for, by which connector.
	 *
	 * @param array<string, mixed> $input Input of the ability.
	 * @return array{operation: string, provider: string, model: string, connector: string}
	 */
	private function asked( array $input ): array {
		$asked = [];
		foreach ( [ 'operation', 'provider', 'model', 'connector' ] as $field ) {
			$asked[ $field ] = trim( (string) ( $input[ $field ] ?? '' ) );
		}
		if ( '' === $asked['operation'] ) {
			throw Failure::because( ErrorCode::BrowserProviderOperationRequired, __( 'A provider request needs "operation"; say what the provider is to do.', 'codebox' ) );
		}
		if ( empty( $input['request'] ) ) {
			throw Failure::because( ErrorCode::BrowserProviderRequestRequired, __( 'A provider request needs "request"; give what the adapter is to send.', 'codebox' ) );
		}
		$names = array_values( array_filter( (array) ( $input['inherit']['connectors'] ?? [] ), static fn( mixed $name ): bool => is_string( $name ) && '' !== trim( $name ) ) );
		if ( '' === $asked['connector'] ) {
			$asked['connector'] = trim( $names[0] ?? '' );
		} elseif ( ! in_array( $asked['connector'], $names, true ) ) {
			$names = [];
		}
		if ( [] === $names ) {
			throw Failure::because( ErrorCode::BrowserProviderConnectorRequired, __( 'A provider request inherits one connector: name it in "inherit.connectors", and in "connector" when there are several.', 'codebox' ) );
		}
		return $asked;
	}

	/**
	 * The request as adapters get it.
	 *
	 * @param array<string, string> $asked     What is asked for.
	 * @param array<string, mixed>  $input     Input of the ability.
	 * @param array<mixed>          $request   The request, cleaned.
	 * @param Connector             $connector The connector.
	 * @param Authorization         $decision  Who asks.
	 * @return array<string, mixed> `wp-codebox/browser-provider-adapter-request/v1`.
	 */
	private function envelope( array $asked, array $input, array $request, Connector $connector, Authorization $decision ): array {
		$context = [];
		foreach ( [ 'session_id', 'caller_session_id', 'job_id', 'sandbox_session_id' ] as $field ) {
			$context[ $field ] = (string) ( $input[ $field ] ?? '' );
		}
		return [
			'schema'    => 'wp-codebox/browser-provider-adapter-request/v1',
			...$asked,
			'connector' => $connector->row(),
			'context'   => $context + [
				'caller'              => $decision->caller,
				'authorization_scope' => $decision->scope->value,
				'orchestrator'        => (array) Redaction::clean( (array) ( $input['orchestrator'] ?? [] ) ),
			],
			'request'   => $request,
		];
	}

	/**
	 * Asks the adapters.
	 *
	 * @param array<string, mixed> $envelope  `wp-codebox/browser-provider-adapter-request/v1`.
	 * @param array<string, mixed> $input     Input of the ability.
	 * @param Connector            $connector The connector.
	 * @return array{success: bool, response: array<mixed>, audit: array<mixed>}
	 */
	private function ask( array $envelope, array $input, Connector $connector ): array {
		$this->lent->begin( $connector->values() );
		$values = [];
		try {
			/**
			 * Carries a provider request out. The built-in bridge answers at priority 10 where the
			 * site has a policy for it.
			 *
			 * @param array<string, mixed>|WP_Error|null $response The answer of an earlier adapter: return it unchanged when it is not null.
			 * @param array{schema: string, operation: string, provider: string, model: string, connector: array<string, mixed>, context: array<string, mixed>, request: array<string, mixed>} $request What to do; no credentials.
			 * @param array<string, mixed> $input Input of the ability, as it came.
			 */
			$answer = apply_filters( 'wp_codebox_browser_provider_request', null, $envelope, $input );
		} catch ( Throwable $thrown ) {
			throw HostAnswer::thrown( $thrown, ErrorCode::BrowserProviderAdapterInvalidResponse, __( 'The provider adapter of this site failed; the PHP error log says where.', 'codebox' ) );
		} finally {
			$values = $this->lent->end();
		}
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::BrowserProviderAdapterMissing,
				__( 'No plugin of this site answers provider requests.', 'codebox' ),
				[ __( 'A host plugin answers the filter wp_codebox_browser_provider_request, or gives the built-in bridge a policy through wp_codebox_browser_provider_bridge_policy.', 'codebox' ) ]
			);
		}
		$invalid = ErrorCode::BrowserProviderAdapterInvalidResponse;
		$wrapped = is_array( $answer ) && is_bool( $answer['success'] ?? null ) && is_array( $answer['response'] ?? null ) && ! isset( $answer['error'] );
		return [
			'success'  => ! $wrapped || $answer['success'],
			'response' => $wrapped ? (array) Redaction::answer( $answer['response'], $values, $invalid ) : HostAnswer::response( $answer, $values, $invalid, $invalid ),
			'audit'    => $wrapped ? (array) Redaction::answer( (array) ( $answer['audit'] ?? [] ), $values, $invalid ) : [],
		];
	}

	/**
	 * The answer.
	 *
	 * @param array<string, string> $asked     What was asked for.
	 * @param array<mixed>          $request   The request, cleaned.
	 * @param Connector             $connector The connector.
	 * @param array<string, mixed>  $answer    Of the adapter, cleaned.
	 * @return array<string, mixed>
	 */
	private function answer( array $asked, array $request, Connector $connector, array $answer ): array {
		$measured = static fn( array $document ): array => [
			'bytes'  => strlen( (string) wp_json_encode( $document ) ),
			'fields' => array_map( 'strval', array_keys( $document ) ),
		];
		$audit    = [
			'schema'           => 'wp-codebox/browser-provider-audit/v1',
			...$asked,
			'request'          => $measured( $request ),
			'response'         => $measured( $answer['response'] ),
			'secrets_redacted' => true,
		];
		return [
			'success'   => $answer['success'],
			'schema'    => 'wp-codebox/browser-provider-adapter-response/v1',
			...$asked,
			'connector' => $connector->row(),
			'response'  => $answer['response'],
			'audit'     => [] === $answer['audit'] ? $audit : $audit + [ 'adapter' => $answer['audit'] ],
		];
	}
}
