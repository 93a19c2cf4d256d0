/**
 * A plain editor: a text area with line numbers. It keeps line ends; a file that it could not save unchanged is read-only.
 */
import { i18n } from '../i18n';
import { normalized, restored } from '../line-endings';
import { basename } from '../paths';
import { button, el, notice, on } from './dom';

/** What the editor asks the page for. */
export interface EditorHost {
	/** Writes the text; throws when that fails. */
	save( path: string, text: string ): Promise< void >;
	/** Returns the text of the file now; null when it is gone or no text. */
	read( path: string ): Promise< string | null >;
	/** Called with text that differs from the file, or with null when the text equals the file again. */
	edited( path: string, unsaved: string | null ): void;
	failed( thrown: unknown ): void;
}

export class Editor {
	readonly element: HTMLElement;
	private readonly area: HTMLTextAreaElement;
	private readonly gutter: HTMLElement;
	private readonly title: HTMLElement;
	private readonly state: HTMLElement;
	private readonly message: HTMLElement;
	private readonly saveButton: HTMLButtonElement;
	private readonly revertButton: HTMLButtonElement;
	private path: string | null = null;
	/** Contents of the file when it was opened or saved. */
	private original = '';
	/** For other files with unsaved text: the contents when they were opened. */
	private readonly bases = new Map< string, string >();
	private lineCount = 0;
	private saving = false;

	constructor( private readonly host: EditorHost ) {
		this.title = el( 'h2', { class: 'wp-codebox-editor-title', dir: 'ltr' }, i18n.__( 'No file is open', 'codebox' ) );
		this.state = el( 'span', { class: 'wp-codebox-editor-state', role: 'status' } );
		this.saveButton = button( i18n.__( 'Save', 'codebox' ), () => void this.save(), { class: 'button button-primary', title: 'Ctrl+S', disabled: true } );
		this.revertButton = button( i18n.__( 'Revert', 'codebox' ), () => this.revert(), { disabled: true } );
		this.gutter = el( 'div', { class: 'wp-codebox-gutter', 'aria-hidden': 'true' }, '1' );
		this.area = el( 'textarea', {
			class: 'wp-codebox-area',
			spellcheck: 'false',
			autocomplete: 'off',
			autocapitalize: 'off',
			wrap: 'off',
			dir: 'ltr',
			readonly: true,
			'aria-label': i18n.__( 'Contents of the file', 'codebox' ),
			placeholder: i18n.__( 'Choose a file in the tree to read and edit it.', 'codebox' ),
		} );
		this.message = el( 'div', { class: 'wp-codebox-editor-message' } );
		on( this.area, {
			input: () => this.changed(),
			scroll: () => {
				this.gutter.style.transform = `translateY(${ -this.area.scrollTop }px)`;
			},
		} );
		this.element = on(
			el(
				'div',
				{ class: 'wp-codebox-editor' },
				el( 'div', { class: 'wp-codebox-bar' }, this.title, this.state, el( 'span', { class: 'wp-codebox-bar-end' }, this.revertButton, this.saveButton ) ),
				this.message,
				el( 'div', { class: 'wp-codebox-editor-body' }, el( 'div', { class: 'wp-codebox-gutter-box' }, this.gutter ), this.area )
			),
			{
				keydown: ( event ) => {
					if ( ( event.ctrlKey || event.metaKey ) && 's' === event.key.toLowerCase() ) {
						event.preventDefault();
						void this.save();
					}
				},
			}
		);
	}

	/** Path of the open file. */
	get file(): string | null {
		return this.path;
	}

	/** Whether the text differs from the file. */
	get isDirty(): boolean {
		return null !== this.path && ! this.area.readOnly && this.area.value !== normalized( this.original );
	}

	/** Shows a file. `unsaved` is text that was not saved before. */
	open( path: string, label: string, text: string | null, unsaved: string | null = null ): void {
		if ( null !== this.path && this.isDirty ) {
			this.bases.set( this.path, this.original );
		}
		const base = null === text || null === unsaved ? undefined : this.bases.get( path );
		this.bases.delete( path );
		this.path = path;
		this.original = base ?? text ?? '';
		this.title.textContent = label;
		this.title.title = path;
		this.message.replaceChildren();
		this.area.readOnly = null === text;
		this.area.setAttribute( 'aria-label', i18n.sprintf( i18n.__( 'Contents of %s', 'codebox' ), label ) );
		this.area.value = unsaved ?? normalized( this.original );
		this.area.scrollTop = 0;
		this.area.scrollLeft = 0;
		if ( null === text ) {
			this.message.append( notice( 'info', el( 'p', {}, i18n.__( 'This file is not UTF-8 text. It is part of the sandbox, but it cannot be edited here.', 'codebox' ) ) ) );
		}
		this.changed();
		if ( undefined !== base && base !== text ) {
			this.conflict( text );
		}
	}

	/** Compares the open file with the sandbox after something else may have written it. */
	async recheck(): Promise< void > {
		const { path } = this;
		if ( null === path || this.saving || this.area.readOnly ) {
			return;
		}
		const now = await this.host.read( path );
		if ( path !== this.path || this.saving || now === this.original ) {
			return;
		}
		if ( ! this.isDirty && null !== now ) {
			this.original = now;
			this.area.value = normalized( now );
			this.changed();
		} else {
			this.conflict( now );
		}
	}

	/** Saves the text. Asks first when the file was changed since it was opened, unless `overwrite` is true. */
	async save( overwrite = false ): Promise< void > {
		const { path } = this;
		if ( null === path || this.saving || this.area.readOnly || ( ! this.isDirty && ! overwrite ) ) {
			return;
		}
		this.saving = true;
		this.saveButton.disabled = true;
		try {
			if ( ! overwrite ) {
				const now = await this.host.read( path );
				if ( now !== this.original ) {
					this.conflict( now );
					return;
				}
			}
			const text = restored( this.original, this.area.value );
			await this.host.save( path, text );
			if ( path === this.path ) {
				this.original = text;
				this.message.replaceChildren();
			}
		} catch ( thrown ) {
			this.host.failed( thrown );
		} finally {
			this.saving = false;
			this.changed();
		}
	}

	private conflict( now: string | null ): void {
		const actions = [
			button( i18n.__( 'Save my version', 'codebox' ), () => void this.save( true ) ),
			null === now
				? null
				: button( i18n.__( 'Show the version of the sandbox', 'codebox' ), () => {
						this.original = now;
						this.area.value = normalized( now );
						this.message.replaceChildren();
						this.changed();
				  } ),
		];
		this.message.replaceChildren(
			notice(
				'warning',
				el(
					'p',
					{},
					null === now
						? i18n.__( 'This file was deleted in the sandbox. Your text is still here.', 'codebox' )
						: i18n.__( 'This file was changed in the sandbox since you opened it. Your text is still here.', 'codebox' )
				),
				el( 'p', { class: 'wp-codebox-buttons' }, actions )
			)
		);
	}

	private revert(): void {
		this.area.value = normalized( this.original );
		this.changed();
		this.area.focus();
	}

	private changed(): void {
		const dirty = this.isDirty;
		this.saveButton.disabled = ! dirty || this.saving;
		this.revertButton.disabled = ! dirty;
		const state = dirty ? i18n.__( 'not saved', 'codebox' ) : '';
		if ( state !== this.state.textContent ) {
			this.state.textContent = state;
		}
		const count = this.area.value.split( '\n' ).length;
		if ( count !== this.lineCount ) {
			this.lineCount = count;
			this.gutter.textContent = Array.from( { length: count }, ( _unused, index ) => index + 1 ).join( '\n' );
		}
		this.gutter.style.transform = `translateY(${ -this.area.scrollTop }px)`;
		if ( null !== this.path ) {
			this.host.edited( this.path, dirty ? this.area.value : null );
		}
	}
}

export { basename };
