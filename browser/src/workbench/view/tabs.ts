/**
 * Tabs as the ARIA pattern wants them: one stop of the Tab key, arrow keys between tabs.
 */
import { el, on, unusedId } from './dom';

export interface Tab {
	readonly name: string;
	readonly label: string;
	readonly panel: HTMLElement;
}

export class Tabs {
	readonly element: HTMLElement;
	private readonly buttons: HTMLButtonElement[];

	constructor(
		label: string,
		private readonly tabs: readonly Tab[]
	) {
		this.buttons = tabs.map( ( tab, index ) => {
			const id = unusedId( 'tab' );
			tab.panel.id ||= unusedId( 'panel' );
			tab.panel.setAttribute( 'role', 'tabpanel' );
			tab.panel.setAttribute( 'aria-labelledby', id );
			return on( el( 'button', { type: 'button', role: 'tab', id, class: 'wp-codebox-tab', 'aria-controls': tab.panel.id }, tab.label ), {
				click: () => this.show( tab.name ),
				keydown: ( event ) => this.move( event, index ),
			} );
		} );
		this.element = el( 'div', { class: 'wp-codebox-tabs' }, el( 'div', { role: 'tablist', 'aria-label': label, class: 'wp-codebox-tablist' }, this.buttons ), tabs.map( ( tab ) => tab.panel ) );
		this.show( tabs[ 0 ]!.name );
	}

	/** Shows the tab with this name. */
	show( name: string ): void {
		this.tabs.forEach( ( tab, index ) => {
			const selected = name === tab.name;
			tab.panel.hidden = ! selected;
			this.buttons[ index ]!.setAttribute( 'aria-selected', String( selected ) );
			this.buttons[ index ]!.tabIndex = selected ? 0 : -1;
		} );
	}

	/** Changes the label of a tab. */
	label( name: string, text: string ): void {
		const index = this.tabs.findIndex( ( tab ) => name === tab.name );
		this.buttons[ index ]!.textContent = text;
	}

	private move( event: KeyboardEvent, index: number ): void {
		const count = this.tabs.length;
		const forward = 'rtl' === getComputedStyle( this.element ).direction ? -1 : 1;
		const targets: Record< string, number > = { ArrowRight: index + forward, ArrowLeft: index - forward, Home: 0, End: count - 1 };
		const target = targets[ event.key ];
		if ( undefined !== target ) {
			event.preventDefault();
			const next = ( target + count ) % count;
			this.show( this.tabs[ next ]!.name );
			this.buttons[ next ]!.focus();
		}
	}
}
