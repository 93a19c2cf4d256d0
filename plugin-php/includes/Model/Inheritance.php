<?php
/**
 * Finds the credentials of connectors that a run or a request inherits.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Order: WordPress's connector; where WordPress has no key, the resolver of a host plugin (a callback or a specification);
 * finally the filter `wp_codebox_resolve_inheritance`. A hook result that cannot be parsed denies the connector.
 */
final class Inheritance {

	/**
	 * Creates the inheritance with its dependencies.
	 *
	 * @param Connectors $connectors Connectors registered in WordPress.
	 */
	public function __construct( private readonly Connectors $connectors ) {}

	/**
	 * Returns the connectors by name, in the requested order, each with a status. Unusable connectors are
	 * returned too; the caller decides about them.
	 *
	 * @param list<string>         $names   Names of the requested connectors.
	 * @param array<string, mixed> $request Request data without secret values: the `inherit` of the input and
	 *   the caller's context.
	 * @param array<string, mixed> $input   Ability input.
	 * @return array<string, Connector>
	 */
	public function resolve( array $names, array $request, array $input ): array {
		$names = array_values( array_unique( array_filter( $names, static fn( mixed $name ): bool => is_string( $name ) && '' !== $name ) ) );
		/**
		 * Supplies credentials of connectors for which WordPress has no key.
		 *
		 * @param array<string, callable|array{provider?: string, model?: string, secret_env?: list<string>,
		 *   secret_values?: array<string, string>, secret_sources?: array<string, string>, hosts?:
		 *   list<string>, status?: string, reason?: string}> $resolvers By connector: a specification, or a
		 *   callable(string $connector, array $request, array $input) that returns one.
		 * @param array<string, mixed> $request Request data without secret values.
		 * @param array<string, mixed> $input   Ability input.
		 */
		$resolvers  = apply_filters( 'wp_codebox_connector_credential_resolvers', [], $request, $input );
		$connectors = [];
		foreach ( $names as $name ) {
			$connector = $this->connectors->get( $name );
			$resolver  = is_array( $resolvers ) ? ( $resolvers[ $name ] ?? null ) : null;
			if ( CredentialStatus::Missing === $connector->status && null !== $resolver ) {
				$answer    = is_callable( $resolver ) ? $resolver( $name, $request, $input ) : $resolver;
				$connector = $this->specified( $connector, $answer );
			}
			$connectors[ $name ] = $this->permitted( $connector, $input );
		}
		return [] === $connectors && empty( $request['settings'] ) ? [] : $this->decided( $connectors, $request, $input );
	}

	/**
	 * Denies the connector when the caller may not use it.
	 *
	 * @param Connector            $connector Connector to check.
	 * @param array<string, mixed> $input     Ability input.
	 */
	private function permitted( Connector $connector, array $input ): Connector {
		if ( Credential::permitted( 'connector', $connector->name, $input ) ) {
			return $connector;
		}
		return $this->with( $connector, CredentialStatus::Denied, __( 'A plugin of this site does not let this user use the credentials of this connector (filter wp_codebox_can_use_credentials).', 'codebox' ) );
	}

	/**
	 * Returns a connector as a host plugin specifies it.
	 *
	 * @param Connector $known Connector as WordPress knows it.
	 * @param mixed     $spec  Specification from the resolver.
	 */
	private function specified( Connector $known, #[\SensitiveParameter] mixed $spec ): Connector {
		if ( ! is_array( $spec ) ) {
			return new Connector( $known->name, CredentialStatus::Denied, __( 'The plugin that supplies the credentials of this connector did not return an array.', 'codebox' ), $known->provider );
		}
		$values      = is_array( $spec['secret_values'] ?? null ) ? $spec['secret_values'] : [];
		$sources     = is_array( $spec['secret_sources'] ?? null ) ? $spec['secret_sources'] : [];
		$credentials = [];
		foreach ( array_unique( array_merge( array_values( (array) ( $spec['secret_env'] ?? [] ) ), array_keys( $values ) ), SORT_REGULAR ) as $name ) {
			if ( ! is_string( $name ) || 1 !== preg_match( '/^[A-Z_][A-Z0-9_]{0,127}$/D', $name ) ) {
				return new Connector( $known->name, CredentialStatus::Denied, __( 'The plugin that supplies the credentials of this connector names a secret that is not a valid environment variable name.', 'codebox' ), $known->provider );
			}
			$value         = is_string( $values[ $name ] ?? null ) && '' !== $values[ $name ] ? $values[ $name ] : null;
			$credentials[] = new Credential( $name, null === $value ? CredentialStatus::Missing : CredentialStatus::Available, Label::clean( $sources[ $name ] ?? 'hook' ), $value );
		}
		$missing = array_filter( $credentials, static fn( Credential $credential ): bool => CredentialStatus::Available !== $credential->status );
		$status  = [] === $credentials ? CredentialStatus::NotRequired : ( [] === $missing ? CredentialStatus::Available : CredentialStatus::Missing );
		if ( isset( $spec['status'] ) && CredentialStatus::Available !== CredentialStatus::read( $spec['status'] ) ) {
			$status = CredentialStatus::read( $spec['status'] );
		}
		return new Connector(
			$known->name,
			$status,
			$status->usable() ? '' : Label::sentence( $spec['reason'] ?? null, array_values( array_filter( $values, 'is_string' ) ), __( 'The plugin that supplies the credentials of this connector denies their use, or has no value for one of its secrets.', 'codebox' ) ),
			Label::clean( $spec['provider'] ?? $known->provider ),
			Label::clean( $spec['model'] ?? '' ),
			$credentials,
			array_values( array_filter( (array) ( $spec['hosts'] ?? [] ), 'is_string' ) )
		);
	}

	/**
	 * Returns the connectors as the filter `wp_codebox_resolve_inheritance` changes them.
	 *
	 * @param array<string, Connector> $connectors Connectors by name.
	 * @param array<string, mixed>     $request    Request data without secret values.
	 * @param array<string, mixed>     $input      Ability input.
	 * @return array<string, Connector>
	 */
	private function decided( array $connectors, array $request, array $input ): array {
		$settings = array_map(
			static fn( mixed $name ): array => [
				'name'   => Label::clean( $name ),
				'status' => 'unresolved',
			],
			array_values( (array) ( $request['settings'] ?? [] ) )
		);
		$rows     = array_map( static fn( Connector $connector ): array => $connector->row(), array_values( $connectors ) );
		/**
		 * Filters the resolved connectors as the final step. Rows carry names and statuses, no values. A row
		 * may deny a connector (`credentials.status`), set its `provider` and `model`, or add `secret_values`
		 * (value by environment name), which are removed from the row. A connector without a row is denied.
		 *
		 * @param array{connectors: list<array<string, mixed>>, settings: list<array<string, mixed>>}
		 *   $resolution Rows of the connectors.
		 * @param array<string, mixed> $request Request data without secret values.
		 * @param array<string, mixed> $input   Ability input.
		 */
		$answer  = apply_filters(
			'wp_codebox_resolve_inheritance',
			[
				'connectors' => $rows,
				'settings'   => $settings,
			],
			$request,
			$input
		);
		$decided = [];
		foreach ( is_array( $answer ) && is_array( $answer['connectors'] ?? null ) ? $answer['connectors'] : [] as $row ) {
			if ( is_array( $row ) && is_string( $row['name'] ?? null ) && isset( $connectors[ $row['name'] ] ) ) {
				$decided[ $row['name'] ] = $row;
			}
		}
		foreach ( $connectors as $name => $connector ) {
			$connectors[ $name ] = isset( $decided[ $name ] ) ? $this->revised( $connector, $decided[ $name ] ) : $this->with( $connector, CredentialStatus::Denied, __( 'The filter wp_codebox_resolve_inheritance of this site did not return this connector.', 'codebox' ) );
		}
		return $connectors;
	}

	/**
	 * Returns a connector changed by its filtered row.
	 *
	 * @param Connector            $connector Connector before the filter.
	 * @param array<string, mixed> $row       Row after the filter.
	 */
	private function revised( Connector $connector, #[\SensitiveParameter] array $row ): Connector {
		$before = $connector->row();
		$values = is_array( $row['secret_values'] ?? null ) ? $row['secret_values'] : [];
		if ( [] !== $values ) {
			$given  = array_filter( (array) ( $row['secretEnv'] ?? [] ), static fn( mixed $name ): bool => is_string( $name ) && isset( $values[ $name ] ) );
			$status = is_array( $row['credentials'] ?? null ) && $row['credentials'] !== $before['credentials'] ? ( $row['credentials']['status'] ?? null ) : null;
			return $this->specified(
				$connector,
				array_filter(
					[
						'provider'      => $row['provider'] ?? null,
						'model'         => $row['model'] ?? null,
						'secret_env'    => array_values( $given ),
						'secret_values' => $values,
						'hosts'         => $row['hosts'] ?? null,
						'status'        => $status,
					],
					static fn( mixed $value ): bool => null !== $value
				)
			);
		}
		$status = CredentialStatus::read( $row['credentials']['status'] ?? null );
		if ( 'unresolved' === ( $row['status'] ?? '' ) && $status->usable() ) {
			$status = CredentialStatus::Denied;
		}
		if ( CredentialStatus::Available === $status && CredentialStatus::Available !== $connector->status ) {
			// A filter that sets the status `available` but supplies no value does not change the status.
			$status = $connector->status;
		}
		$reason = $status->usable() ? '' : Label::sentence( $row['credentials']['reason'] ?? '', array_values( $connector->values() ), $connector->reason );
		return new Connector( $connector->name, $status, $reason, Label::clean( $row['provider'] ?? '' ), Label::clean( $row['model'] ?? '' ), $connector->credentials, $connector->hosts );
	}

	/**
	 * Returns a copy of the connector with another status.
	 *
	 * @param Connector        $connector Connector to copy.
	 * @param CredentialStatus $status    Status of the copy.
	 * @param string           $reason    Reason for the status.
	 */
	private function with( Connector $connector, CredentialStatus $status, string $reason ): Connector {
		return new Connector( $connector->name, $status, $reason, $connector->provider, $connector->model, array_map( static fn( Credential $credential ): Credential => $credential->as( $status ), $connector->credentials ), $connector->hosts );
	}
}
