<?php
/**
 * Requests to a model provider in the older format, through adapters: host plugins or the built-in one.
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
 * Adapters get a redacted request without a credential. A host plugin adds its own credential; the built-in adapter gets the
 * connector's credential from ActiveSecrets. Every failure becomes a `WP_Error`; without an adapter the request fails.
 */
final class ProviderRequests {

	public const EVENT = 'provider-request';

	private const MOST_BYTES = 1048576;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ExtensionGate   $gate    Check that the PHP extension is loaded and its version fits.
	 * @param TrustedCallers  $callers Authorizes the caller.
	 * @param ConnectorSource $source  Resolves connectors.
	 * @param ActiveSecrets   $secrets Secret values that the built-in adapter may use during a request.
	 * @param AuditTrail      $audit   Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly TrustedCallers $callers,
		private readonly ConnectorSource $source,
		private readonly ActiveSecrets $secrets,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Carries out one provider request and records it in the audit log.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-provider-adapter-response/v1`.
	 * @throws Failure For every error.
	 */
	public function execute( array $input ): array {
		$this->gate->check();
		$asked    = $this->asked( $input );
		$decision = $this->callers->admitted( Scope::RequestConnector, $input['authorization'] ?? null, $input );
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
	 * Returns operation, provider, model and connector of the request, after checking the input.
	 *
	 * @param array<string, mixed> $input Ability input.
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
			throw Failure::because( ErrorCode::BrowserProviderConnectorRequired, __( 'A provider request needs a connector: list it in "inherit.connectors"; a name in "connector" must be in that list.', 'codebox' ) );
		}
		return $asked;
	}

	/**
	 * Builds the request document that the adapters get.
	 *
	 * @param array<string, string> $asked     Requested operation, provider, model and connector.
	 * @param array<string, mixed>  $input     Ability input.
	 * @param array<mixed>          $request   Redacted request.
	 * @param Connector             $connector WordPress connector.
	 * @param Authorization         $decision  Authorization decision about the caller.
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
	 * Passes the request to the adapters and redacts their response.
	 *
	 * @param array<string, mixed> $envelope  `wp-codebox/browser-provider-adapter-request/v1`.
	 * @param array<string, mixed> $input     Ability input.
	 * @param Connector            $connector WordPress connector.
	 * @return array{success: bool, response: array<mixed>, audit: array<mixed>}
	 */
	private function ask( array $envelope, array $input, Connector $connector ): array {
		$this->secrets->begin( $connector->values() );
		$values = [];
		try {
			/**
			 * Carries out a provider request. The built-in adapter answers at priority 10 if the site has a
			 * policy for the provider.
			 *
			 * @param array<string, mixed>|WP_Error|null $response Response of an earlier adapter: return it
			 *   unchanged when it is not null.
			 * @param array{schema: string, operation: string, provider: string, model: string, connector:
			 *   array<string, mixed>, context: array<string, mixed>, request: array<string, mixed>} $request
			 *   Request to carry out, without credentials.
			 * @param array<string, mixed> $input Input of the ability, unchanged.
			 */
			$answer = apply_filters( 'wp_codebox_browser_provider_request', null, $envelope, $input );
		} catch ( Throwable $thrown ) {
			throw PluginResponse::thrown( $thrown, ErrorCode::BrowserProviderAdapterInvalidResponse, __( 'The plugin that answers provider requests threw an exception; the PHP error log says where.', 'codebox' ) );
		} finally {
			$values = $this->secrets->end();
		}
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::BrowserProviderAdapterMissing,
				__( 'No plugin of this site answers provider requests.', 'codebox' ),
				[ __( 'Install a plugin that answers the filter wp_codebox_browser_provider_request, or that sets a policy for the built-in bridge with the filter wp_codebox_browser_provider_bridge_policy.', 'codebox' ) ]
			);
		}
		$invalid = ErrorCode::BrowserProviderAdapterInvalidResponse;
		$wrapped = is_array( $answer ) && is_bool( $answer['success'] ?? null ) && is_array( $answer['response'] ?? null ) && ! isset( $answer['error'] );
		return [
			'success'  => ! $wrapped || $answer['success'],
			'response' => $wrapped ? (array) Redaction::answer( $answer['response'], $values, $invalid ) : PluginResponse::response( $answer, $values, $invalid, $invalid ),
			'audit'    => $wrapped ? (array) Redaction::answer( (array) ( $answer['audit'] ?? [] ), $values, $invalid ) : [],
		];
	}

	/**
	 * Builds the response to the caller from the adapter's response.
	 *
	 * @param array<string, string> $asked     Requested provider, model and connector.
	 * @param array<mixed>          $request   Redacted request.
	 * @param Connector             $connector WordPress connector.
	 * @param array<string, mixed>  $answer    Redacted response of the adapter.
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
